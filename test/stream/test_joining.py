"""Objects of several cameras in one stream: joined by geometry, or given in space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.messages.cdr import CdrWriter, Header
from lla_fusion_ros.messages.contract import STATIC_TRANSFORMS, TRANSFORMS
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.signworld.geometry import rig_of
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from support.tiny_bundle import tiny_bundle

DRIVE = Drive(DriveSettings(seed=3, duration=2.0))
RIG = rig_of(DRIVE)
CAMERAS = DRIVE.camera_names
SPACE = CameraWiring(detections_type="vision_msgs/msg/Detection3DArray")


@pytest.fixture(scope="module")
def frames():
    return list(DRIVE)


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


def make(bundle, wiring=None, **settings) -> Perception:
    stream = StreamSettings(queue_depth=1000, **settings)
    return Perception(bundle, Classifier(bundle, "cpu"), CAMERAS, stream, wiring=wiring)


def tell_geometry(perception: Perception, infos=RIG.infos, mounts=RIG.mounts) -> None:
    for camera, info in infos.items():
        perception.offer(camera, "camera_info", write_camera_info(info))
    perception.offer_transforms(STATIC_TRANSFORMS, write_transforms(mounts))


def play(perception: Perception, frames, clock: float = 0.0, before=None):
    """Boxes without ids; the clock of the right camera may be off."""
    fused = []
    for number, frame in enumerate(frames):
        if before is not None:
            before(number)
        stamp = frame.stamp + (round(clock * 1e9) if frame.camera == "right" else 0)
        header = Header(stamp, frame.camera)
        boxes = np.insert(frame.boxes, 2, 0.0, axis=1)
        perception.offer(frame.camera, "image", write_image(header, frame.image, "rgb8"), now=frame.stamp)
        listed = write_detections(header, ("",) * len(boxes), boxes)
        perception.offer(frame.camera, "detections", listed, now=frame.stamp)
        fused += perception.step()
    return fused


def shared(fused) -> set[str]:
    """Objects that both cameras have seen."""
    by = {
        camera: {name for each in fused if each.camera == camera for name in each.result.ids}
        for camera in CAMERAS
    }
    return by["left"] & by["right"]


def test_tracks_of_two_cameras_become_one_object_under_the_oldest_id(bundle, frames) -> None:
    perception = make(bundle)
    tell_geometry(perception)
    fused = play(perception, frames)
    assert len(shared(fused)) >= 2
    joined = [each for each in fused if any(len(own) > 1 for own in each.result.members)]
    names = {
        name: own
        for each in joined
        for name, own in zip(each.result.ids, each.result.members, strict=True)
        if own
    }
    assert all(own[0] == name for name, own in names.items())
    assert all(camera.startswith("joined") for camera in map(perception.joining.status, CAMERAS))
    assert int(perception.joining.counts["joins"]) >= 2
    views = joined[-1].result.verdicts[0].views
    assert set(views) <= set(CAMERAS)


@pytest.mark.parametrize("identity", ["camera", "global"])
def test_the_users_word_about_identity_stands_above_geometry(bundle, frames, identity) -> None:
    perception = make(bundle, identity=identity)
    tell_geometry(perception)
    play(perception, frames[:20])
    assert perception.joining.counts["joins"] == "0"
    assert perception.joining.status("left") == "not used: `identity` says who is who"


def no_info(perception):
    return None


def zero_focal(perception):
    bad = replace(RIG.infos["right"], matrix=(0.0,) * 9)
    tell_geometry(perception, {**RIG.infos, "right": bad})


def nonsense(perception):
    bad = replace(RIG.infos["right"], distortion=(-80.0, 900.0, 0.0, 0.0, -4e4))
    tell_geometry(perception, {**RIG.infos, "right": bad})


def no_transforms(perception):
    tell_geometry(perception, mounts=())


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (no_info, "no camera_info has come"),
        (zero_focal, "focal length"),
        (nonsense, "cannot be undone"),
        (no_transforms, "no transform leads"),
    ],
)
def test_without_good_geometry_cameras_stay_apart_and_say_why(bundle, frames, say, reason) -> None:
    perception = make(bundle)
    say(perception)
    fused = play(perception, frames[:30])
    assert not shared(fused) and len(fused) == 30
    assert reason in perception.joining.status("right")


def test_a_transform_that_jumps_parts_objects_and_is_told(bundle, frames) -> None:
    perception = make(bundle)
    tell_geometry(perception)

    def before(number: int) -> None:
        if number >= 20:  # the right camera is here, then there
            right = RIG.mounts[1]
            place = (right.place[0], right.place[1] + 0.5 * (number % 2), right.place[2])
            moved = replace(right, place=place)
            perception.offer_transforms(STATIC_TRANSFORMS, write_transforms([moved]))

    fused = play(perception, frames, before=before)
    assert not any(len(own) > 1 for each in fused[-4:] for own in each.result.members)
    assert "jumps" in perception.joining.status("right") and perception.joining.geometry.jumps > 0


def test_a_clock_that_is_off_joins_nothing_wrong_and_is_told(bundle, frames) -> None:
    perception = make(bundle)
    tell_geometry(perception)
    play(perception, frames, clock=0.4)
    assert perception.joining.counts["joins"] == "0"
    assert "+0.40 s" in perception.joining.status("right")


def test_hostile_bytes_are_counted_and_change_nothing(bundle) -> None:
    perception = make(bundle)
    rng = np.random.default_rng(0)
    good = write_camera_info(RIG.infos["left"]), write_transforms(RIG.mounts)
    for _ in range(200):
        for number, data in enumerate(good):
            torn = bytearray(data[: rng.integers(0, len(data))])
            for place in rng.integers(0, max(1, len(torn)), 5):
                if len(torn):
                    torn[place] = rng.integers(0, 256)
            if number:
                perception.offer_transforms(TRANSFORMS, bytes(torn))
            else:
                perception.offer("left", "camera_info", bytes(torn))
    assert perception.tally.of("left")["dropped_bad_message"] > 0


def boxes_in_space(stamp: int, frame_id: str, things) -> bytes:
    """vision_msgs/Detection3DArray of signs."""
    writer = CdrWriter()
    writer.header(Header(stamp, frame_id))
    writer.u32(len(things))
    for thing in things:
        writer.header(Header(stamp, frame_id))
        writer.u32(0)
        x, y, z = thing.position
        writer.align(8)
        numbers = (z, -x, y, 0, 0, 0, 1, 0.05, thing.side, thing.side)
        writer.raw(np.array(numbers, "<f8").tobytes())
        writer.string(f"object {thing.id}")
    return writer.message()


def test_objects_in_space_are_the_objects_of_every_camera(bundle, frames) -> None:
    perception = make(bundle, dict.fromkeys(CAMERAS, SPACE))
    tell_geometry(perception)
    fused, overlap = [], []
    for frame in frames[:12]:
        header = Header(frame.stamp, f"{frame.camera}_optical_frame")
        perception.offer_transforms(TRANSFORMS, write_transforms([RIG.vehicle(frame.stamp)]))
        perception.offer(frame.camera, "image", write_image(header, frame.image, "rgb8"))
        ahead = [each for each in DRIVE.objects if 3 < each.position[2] - 9 < 45]
        perception.offer(frame.camera, "detections", boxes_in_space(frame.stamp, "odom", ahead))
        for each in perception.step():
            fused.append(each)
            known = dict(zip(frame.ids, frame.boxes, strict=True))
            for name, box in zip(each.result.ids, each.frame.bbox, strict=True):
                if (true := known.get(name.removeprefix("object "))) is not None:
                    overlap.append(iou(box[[0, 1, 3, 4]], true))
    assert len(shared(fused)) >= 2 and all(name.startswith("object ") for name in shared(fused))
    assert np.median(overlap) > 0.6
    assert perception.chosen["left"].scope == "global"


def test_objects_in_space_without_a_transform_are_counted(bundle, frames) -> None:
    perception = make(bundle, dict.fromkeys(CAMERAS, SPACE))
    frame = frames[0]
    perception.offer(frame.camera, "image", write_image(Header(frame.stamp, "x"), frame.image, "rgb8"))
    perception.offer(frame.camera, "detections", boxes_in_space(frame.stamp, "odom", DRIVE.objects[:3]))
    perception.step()
    assert perception.tally.of(frame.camera)["dropped_no_geometry"] == 3


def iou(first: np.ndarray, second: np.ndarray) -> float:
    low = np.maximum(first[:2] - first[2:] / 2, second[:2] - second[2:] / 2)
    high = np.minimum(first[:2] + first[2:] / 2, second[:2] + second[2:] / 2)
    common = np.maximum(high - low, 0).prod()
    return float(common / (first[2:].prod() + second[2:].prod() - common))
