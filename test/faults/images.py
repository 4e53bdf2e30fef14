"""Images that are not what their headers say, or not what came before."""

from __future__ import annotations

import struct

import cv2
import numpy as np

from faults.drive import header_of, with_boxes, with_image
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import Scene
from lla_fusion_ros.messages.cdr import CdrWriter, Header
from lla_fusion_ros.messages.images import write_compressed_image, write_image

BAD_IMAGE = "dropped_bad_image"
ENCODINGS = {
    "rgb8": lambda image: image,
    "bgr8": lambda image: image[..., ::-1].copy(),
    "rgba8": lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2RGBA),
    "bgra8": lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2BGRA),
    "mono8": lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY),
    "mono16": lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.uint16) * 256,
    "rgb16": lambda image: image.astype(np.uint16) * 256,
    "bayer_rggb8": lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY),
}
SCALES = (1.0, 0.5, 2.0)


def image_message(
    header: Header, height: int, width: int, step: int, data: bytes, encoding: str = "rgb8"
) -> bytes:
    """A sensor_msgs/Image whose fields need not agree."""
    writer = CdrWriter()
    writer.header(header)
    writer.u32(height)
    writer.u32(width)
    writer.string(encoding)
    writer.u8(0)
    writer.u32(step)
    writer.u32(len(data))
    writer.raw(data)
    return writer.message()


@fault(
    "every frame has another size and encoding than the one before: 8 encodings, half to double size",
    "every frame is fused, as the core decodes it; encodings that nobody knows are counted as `bad_image`",
)
def sizes_and_encodings(scene: Scene, checks: Checks) -> int:
    injected = unknown = 0
    for encoding, convert in ENCODINGS.items():
        for scale in SCALES[: scene.times(len(SCALES))]:
            shot = scene.road.next_of("left")
            image = cv2.resize(scene.road.scene.image, None, fx=scale, fy=scale)
            image = np.ascontiguousarray(convert(image))
            shot = with_image(shot, write_image(header_of(shot), image, encoding))
            scene.step(with_boxes(shot, scene.road.scene.ids, scene.road.scene.boxes * scale))
            injected += 1
        shot = scene.road.next_of("left")
        strange = image_message(header_of(shot), 480, 640, 640 * 7, bytes(480 * 640 * 7), f"{encoding}X")
        checks.that(not scene.step(with_image(shot, strange)), f"the core takes encoding {encoding}X")
        unknown += 1
    scene.settle()
    scene.check_counts(checks, "perception", "left", {BAD_IMAGE: unknown})
    return injected + unknown


@fault(
    "JPEG files cut off at random places, or filled up with zeros after them; between good ones",
    "each is counted as `bad_image`, none is fused as grey",
)
def half_written_jpegs(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(1)
    count = scene.times(20)
    for number in range(count):
        shot = scene.road.next_of("right")
        file = cv2.imencode(".jpg", scene.road.scene.image)[1].tobytes()
        cut = int(rng.integers(0, len(file) - 2))
        half = file[:cut] + bytes(len(file) - cut if number % 2 else 0)
        bad = with_image(shot, write_compressed_image(header_of(shot), half, "jpeg"))
        checks.that(not scene.step(bad), f"the core takes a JPEG cut at {cut} of {len(file)}")
        if number % 5 == 0:
            scene.drive(2)
    scene.settle()
    scene.check_counts(checks, "perception", "right", {BAD_IMAGE: count})
    return count


@fault(
    "Image messages with fewer bytes than step x height, a step shorter than a row, or no size at all",
    "each is counted as `bad_image`",
)
def truncated_images(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(2)
    count = 0
    for _ in range(scene.times(5)):
        shot = scene.road.next_of("left")
        pixels = scene.road.scene.image.tobytes()
        height, width = scene.road.scene.image.shape[:2]
        for rows, columns, step, length in (
            (height, width, 3 * width, int(rng.integers(0, len(pixels) - 1))),
            (height, width, 2 * width, len(pixels)),
            (height + 1, width, 3 * width, len(pixels)),
            (0, 0, 0, len(pixels)),
            (2**32 - 1, 2**32 - 1, 2**32 - 1, 12),
        ):
            bad = image_message(header_of(shot), rows, columns, step, pixels[:length])
            checks.that(not scene.step(with_image(shot, bad)), f"the core takes {rows}x{columns}, {step}")
            checks.that(scene.step(scene.road.next_of("left")), "the good frame after it was not fused")
            count += 1
    scene.settle()
    scene.check_counts(checks, "perception", "left", {BAD_IMAGE: count})
    return count


@fault(
    "headers of 100 megapixels without data: raw images, JPEG and PNG files",
    "each is counted as `bad_image` before anything is allocated",
)
def hundred_megapixels(scene: Scene, checks: Checks) -> int:
    count = scene.times(10)
    side = 10_000
    jpeg = b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 17, 8, side, side, 3) + bytes(9) + b"\xff\xd9"
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", side, side) + bytes(20) + b"IEND"
    for number in range(count):
        shot = scene.road.next_of("left")
        bad = image_message(header_of(shot), side, side, 3 * side, b"")
        checks.that(not scene.step(with_image(shot, bad)), "the core takes 100 megapixels of nothing")
        shot = scene.road.next_of("right")
        file, kind = (jpeg, "jpeg") if number % 2 else (png, "png")
        bad = write_compressed_image(header_of(shot), file, kind)
        checks.that(not scene.step(with_image(shot, bad)), f"the core takes a {kind} of 100 megapixels")
    scene.settle()
    for camera in ("left", "right"):
        scene.check_counts(checks, "perception", camera, {BAD_IMAGE: count})
    return 2 * count


@fault(
    "random bytes, and good messages cut short, on the topics of images and detections",
    "each is counted as `bad_message`",
)
def bytes_that_are_no_message(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(3)
    count = 0
    for size in (8, 40, 400):
        shot = scene.road.next_of("left")
        noise = b"\x00\x01\x00\x00" + b"\xff" * 12 + rng.bytes(size)  # a frame_id of four gigabytes
        for publisher, good in (
            (scene.cameras["left"].images, shot.image),
            (scene.cameras["left"].detections, shot.detections),
        ):
            publisher.publish(noise)
            publisher.publish(good[: 24 + size % 17])
            count += 2
        scene.drive(2)
    scene.settle()
    scene.check_counts(checks, "perception", "left", {"dropped_bad_message": count})
    return count
