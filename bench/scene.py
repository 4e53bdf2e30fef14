"""The load of bench, and of the soak of `class_fusion`: as many cameras and signs as wanted, as a bag."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import cv2
import numpy as np

from bench.fusion import sign_crops
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.lab.makebag.write import SceneFrame, make_bag
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import Listing
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import CLASS_NAMES
from lla_fusion_ros.signworld.signs import face_of
from lla_fusion_ros.stream.frame_messages import Outgoing, bundle_message, view_messages
from lla_fusion_ros.stream.frames import ViewFrame

RATE = 10.0
SIZE, RAW_SIZE = (640, 480), (1920, 1080)  # width, height
IN_FRAME = 100  # objects of a frame of views
_PICTURES = 8  # different ones; they are shown over and over
_NUMBERED = re.compile(rb"\d{7}(?=\0)")  # ids of views
_BEGIN = 10**18  # stamp of the first frame


def camera_names(count: int) -> list[str]:
    return [f"camera{number}" for number in range(1, count + 1)]


def write_scene(bag: Path, cameras: int, objects: int, seconds: float, raw: bool = False) -> Path:
    """Cameras that are triggered together; an object keeps its id and its class, and sways a little."""
    frames = _frames(cameras, objects, seconds, RAW_SIZE if raw else SIZE)
    make_bag(frames, bag, "bench", CLASS_NAMES, "raw" if raw else "jpeg", overwrite=True)
    return bag


def write_views(bag: Path, bundle: Bundle, cameras: int, objects: int, lives: int) -> Path:
    """What `crop_classifier`s send of a crowd: each frame shows a part of the objects, part after part.

    An object has an id of seven digits and is gone after `lives` rounds: another has its place. The bag is so
    long that all have changed once; in the next turn an id is `objects` higher.
    """
    parts = objects // IN_FRAME
    crops = sign_crops(lives, objects, bundle.input_size)  # [lives * objects, ...], a round after the other
    views = Classifier(bundle, "cpu")(crops)
    bbox = np.tile([320.0, 240.0, 0.0, 32.0, 32.0], (IN_FRAME, 1))
    with BagWriter(bag) as writer:

        def write(stamp: int, messages: Iterable[Outgoing], latched: bool = False) -> None:
            for message in messages:
                writer.add("/" + message.topic, message.type, latched)
                writer.write("/" + message.topic, stamp, message.data)

        for camera in camera_names(cameras):
            write(_BEGIN, [bundle_message(camera, bundle, _BEGIN)], latched=True)
        for number in range(lives * parts):
            stamp = _BEGIN + round(number * 1e9 / RATE)
            turn, part = divmod(number, parts)
            rows = np.arange(part * IN_FRAME, (part + 1) * IN_FRAME)
            changed = objects * (turn >= part % lives)  # not all at once
            ids = tuple(f"{row + changed:07d}" for row in rows)
            shown = views.take(turn * objects + rows)
            for camera in camera_names(cameras):
                frame = ViewFrame(camera, Header(stamp, camera), ids, bbox, shown, ids)
                write(stamp, view_messages(frame, Listing(0.999)))
    return bag


def counted_up(views: bytes, by: int) -> bytes:
    """A message of `write_views` with ids so much higher."""
    return _NUMBERED.sub(lambda number: b"%07d" % (int(number[0]) + by), views)


def _frames(cameras: int, objects: int, seconds: float, size: tuple[int, int]) -> Iterator[SceneFrame]:
    pictures = [_picture(objects, number, *size) for number in range(_PICTURES)]
    ids = tuple(map(str, range(1, objects + 1)))
    classes = tuple(CLASS_NAMES[number % len(CLASS_NAMES)] for number in range(objects))
    for step in range(round(seconds * RATE)):
        stamp = _BEGIN + round(step * 1e9 / RATE)
        for camera in camera_names(cameras):
            image, boxes = pictures[step % _PICTURES]
            yield SceneFrame(camera, stamp, image, boxes, ids, classes)


def _picture(objects: int, number: int, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """RGB image and boxes cx, cy, w, h: signs on a grid."""
    noise = np.random.default_rng(number).integers(60, 180, (height // 8, width // 8, 3)).astype(np.uint8)
    image = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
    columns = int(np.ceil(np.sqrt(objects * width / height)))
    rows = -(-objects // columns)
    side = min(int(0.6 * width / columns), int(0.6 * height / rows), 64)
    sway = round(0.1 * side * np.sin(2 * np.pi * number / _PICTURES))
    boxes = np.empty((objects, 4))
    for index in range(objects):
        left = round((index % columns + 0.5) * width / columns - side / 2) + sway
        top = round((index // columns + 0.5) * height / rows - side / 2)
        face = cv2.resize(face_of(CLASS_NAMES[index % len(CLASS_NAMES)]), (side, side)).astype(np.float32)
        part = image[top : top + side, left : left + side]
        part[:] = part * (1 - face[..., 3:] / 255) + face[..., :3]
        boxes[index] = left + side / 2, top + side / 2, side, side
    return image, boxes
