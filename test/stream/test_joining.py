"""Objects of several cameras in one stream: joined by geometry, or given in space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import STATIC_TRANSFORMS, TRANSFORMS
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.signworld.geometry import rig_of
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.settings import FusionSettings
from support.objects_in_space import boxes_in_space
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


def test_transforms_that_come_late_join_from_then_on(bundle, frames) -> None:
    perception = make(bundle)
    tell_geometry(perception, mounts=())
    told = []

    def before(number: int) -> None:
        if number == 20:
            told.append(perception.joining.status("right"))
            assert perception.joining.counts["joins"] == "0"
            perception.offer_transforms(STATIC_TRANSFORMS, write_transforms(RIG.mounts))

    fused = play(perception, frames, before=before)
    assert "no transform leads" in told[0] and shared(fused)
    assert perception.joining.status("right").startswith("joined") and len(fused) == len(frames)


def boxes_only(drive: Drive, rng: np.random.Generator):
    """Camera, stamp and boxes of a drive as a detector gives them, without its images."""
    for step in range(drive.steps):
        for number, camera in enumerate(drive.camera_names):
            moment = drive._time(step, number)
            x, z = drive.vehicle(moment)
            ahead = [thing for thing in drive.objects if 0 < thing.position[2] - z < 60]
            seen = drive._tracked(number, drive._renderers[number].see(ahead, (x, z)))
            edges = np.array([each.box for each in seen]).reshape(-1, 4)
            sides = edges[:, 2:] - edges[:, :2]
            middle = edges[:, :2] + sides * (0.5 + rng.normal(0, 0.05, sides.shape))
            boxes = np.column_stack([middle, np.zeros(len(seen)), sides])
            yield camera, drive.settings.start + round(moment * 1e9), boxes


@pytest.mark.parametrize(("turned", "said"), [(0.0, "joined"), (10.0, "not joined with left: tracks")])
def test_a_camera_that_is_turned_by_ten_degrees_joins_nothing_and_says_so(turned, said) -> None:
    drive = Drive(DriveSettings(seed=21, look=1, duration=12.0))
    rig = rig_of(drive)
    turn = Rotation.from_quat(rig.mounts[1].turn) * Rotation.from_euler("y", turned, degrees=True)
    mounts = (rig.mounts[0], replace(rig.mounts[1], turn=tuple(turn.as_quat())))
    perception = Perception(
        score_bundle(["sign"]),
        None,
        CAMERAS,
        StreamSettings(queue_depth=1000),
        FusionSettings(idle_timeout=1.0),
    )
    tell_geometry(perception, rig.infos, mounts)
    fused = 0
    for camera, stamp, boxes in boxes_only(drive, np.random.default_rng(21)):
        pmf = np.ones((len(boxes), 1))
        told = Listing(most=1, class_names=["sign"], rest=False)
        data = write_detections(Header(stamp, camera), ("",) * len(boxes), boxes, pmf, told)
        perception.offer(camera, "detections", data, now=stamp)
        fused += len(perception.step())
    assert (perception.joining.counts["joins"] == "0") == bool(turned)
    status = perception.joining.status("right")
    assert said in status and ("check its camera_info" in status) == bool(turned) and fused == 240


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


def play_with_objects(perception, frames, things, first: int = 0, missed: str = "", ids: bool = False):
    """Boxes of each camera's own tracker, without those of one sign; from a frame on, objects beside them."""
    fused = []
    for number, frame in enumerate(frames):
        header = Header(frame.stamp, f"{frame.camera}_optical_frame")
        kept = [row for row, name in enumerate(frame.ids) if name != missed]
        names = [f"t{frame.ids[row]}" if ids else "" for row in kept]
        boxes = np.insert(frame.boxes[kept], 2, 0.0, axis=1)
        perception.offer_transforms(TRANSFORMS, write_transforms([RIG.vehicle(frame.stamp)]))
        if number >= first:
            perception.offer_objects(boxes_in_space(frame.stamp, "odom", things))
        perception.offer(frame.camera, "image", write_image(header, frame.image, "rgb8"))
        perception.offer(frame.camera, "detections", write_detections(header, names, boxes))
        fused += perception.step()
    return fused


def test_boxes_that_objects_in_space_overlap_are_these_objects_in_every_camera(bundle, frames) -> None:
    things = [each for each in DRIVE.objects if each.position[2] < 60][::2]
    perception = make(bundle)
    tell_geometry(perception)
    fused = play_with_objects(perception, frames[:20], things, ids=True)
    known = {each.id for each in things}
    seen = {}
    for each in fused:
        for row, name in zip(each.result.kept, each.result.ids, strict=True):
            track = each.frame.track_ids[row].removeprefix("t")  # what it truly is
            seen.setdefault((each.camera, track), set()).add(name)
    assert any(("left", own) in seen and ("right", own) in seen for own in known)
    for (camera, own), names in seen.items():
        if own in known:
            assert names == {f"object {own}"}
        elif not own.startswith("object"):  # no partner: tracks of cameras, joined by geometry or not
            assert all(name.endswith(f"/t{own}") for name in names), (camera, own, names)
    assert perception.tally.of("")["object_messages"] == 20


def test_an_object_that_the_detector_missed_is_seen_all_the_same(bundle, frames) -> None:
    shown = [name for name in frames[0].ids if name in frames[1].ids and name in frames[9].ids]
    things = [each for each in DRIVE.objects if each.id == shown[0]]
    perception = make(bundle)
    tell_geometry(perception)
    fused = play_with_objects(perception, frames[:10], things, missed=shown[0])
    assert all(f"object {shown[0]}" in each.result.ids for each in fused) and len(fused) == 10


def test_what_was_seen_before_an_object_was_known_counts_for_it(bundle, frames) -> None:
    (shown, *_) = [name for name in frames[0].ids if all(name in frame.ids for frame in frames[:20])]
    things = [each for each in DRIVE.objects if each.id == shown]
    perception = make(bundle)
    tell_geometry(perception)
    fused = play_with_objects(perception, frames[:20], things, first=10)
    before = [each for each in fused[:10] if each.camera == "left"]
    last = [each for each in fused if each.camera == "left"][-1]
    row = last.result.ids.index(f"object {shown}")
    views = last.result.verdicts[row].views
    assert views == {"left": 10, "right": 9}, views  # the last right frame comes after it
    assert not any("object" in name for each in before for name in each.result.ids)


@pytest.mark.parametrize("identity", ["camera", "global"])
def test_objects_name_no_box_where_the_user_says_who_is_who(bundle, frames, identity) -> None:
    perception = make(bundle, identity=identity)
    tell_geometry(perception)
    fused = play_with_objects(perception, frames[:4], DRIVE.objects[:9], ids=True)
    assert not any("object" in name for each in fused for name in each.result.ids)


def test_objects_that_nobody_can_place_leave_the_boxes_alone(bundle, frames) -> None:
    perception = make(bundle)
    fused = play_with_objects(perception, frames[:6], DRIVE.objects[:3], ids=True)
    assert len(fused) == 6 and all("/t" in name for each in fused for name in each.result.ids)
    assert perception.tally.of("left")["dropped_no_geometry"] == 9
    perception.offer_objects(b"\x00\x01\x00\x00torn")
    assert perception.tally.of("")["dropped_bad_message"] == 1


def iou(first: np.ndarray, second: np.ndarray) -> float:
    low = np.maximum(first[:2] - first[2:] / 2, second[:2] - second[2:] / 2)
    high = np.minimum(first[:2] + first[2:] / 2, second[:2] + second[2:] / 2)
    common = np.maximum(high - low, 0).prod()
    return float(common / (first[2:].prod() + second[2:].prod() - common))
