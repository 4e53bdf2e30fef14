"""Trackers that report nonsense: impossible boxes, impossible ids, too many ids, other people's ids."""

from __future__ import annotations

import numpy as np

from faults.drive import with_boxes
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import Scene
from faults.transport import check_halves
from lla_fusion_ros.types.settings import FusionSettings

NAN, INF = float("nan"), float("inf")
BAD_BOXES = {
    "dropped_box_not_finite": [[NAN, 100, 30, 30], [100, 100, INF, 30], [-INF, NAN, NAN, NAN]],
    "dropped_box_inverted": [[100, 100, -30, 30], [100, 100, 30, 0], [100, 100, -1e300, -1e300]],
    "dropped_box_absurd": [[100, 100, 1e9, 1e9], [1e12, 100, 30, 30], [100, 100, 1e308, 1e308]],
    "dropped_box_outside": [[-100, -100, 30, 30], [2000, 100, 30, 30], [100, -1500, 30, 30]],
    "dropped_box_too_small": [[100, 100, 1e-9, 1e-9], [100, 100, 2, 30], [0, 0, 3, 3]],
}
ODD_IDS = ("ä", "标志", "🚦", "a b\tc", "../../etc", "7", "7.0", "0x7", "-7", "nan", "null", "{}", " ")


@fault(
    "NaN, infinite, negative, inverted, gigantic, tiny and outside boxes between good ones",
    "the bad boxes are counted by reason (`box_...`), the good ones of the same frame are fused",
)
def impossible_boxes(scene: Scene, checks: Checks) -> int:
    rounds = scene.times(5)
    for _ in range(rounds):
        shot = scene.road.next_of("left")
        good = scene.road.scene
        bad = np.concatenate([np.array(boxes, float) for boxes in BAD_BOXES.values()])
        ids = [*good.ids, *(f"bad {number}" for number in range(len(bad)))]
        mixed = with_boxes(shot, ids, np.concatenate([good.boxes, bad]))
        checks.that(scene.step(mixed), "the good boxes of the frame were not fused")
        scene.drive(2)
    scene.settle()
    expected = {reason: rounds * len(boxes) for reason, boxes in BAD_BOXES.items()}
    scene.check_counts(checks, "perception", "left", expected)
    return rounds * sum(map(len, BAD_BOXES.values()))


@fault(
    "ids that are empty, 10 kB long, not ASCII, of changing type (7, 7.0, 0x7, null), or twice in a frame",
    "empty, long and double ones are counted (`empty_id`, `long_id`, `duplicate`), the others come out byte "
    "for byte",
)
def impossible_ids(scene: Scene, checks: Checks) -> int:
    rounds = scene.times(5)
    box = [320.0, 240, 40, 40]
    for _ in range(rounds):
        shot = scene.road.next_of("right")
        ids = ["", "x" * 10_000, "é" * 5_000, *ODD_IDS, ODD_IDS[0], ""]
        checks.that(scene.step(with_boxes(shot, ids, [box] * len(ids))), "no track of the frame was fused")
        said = tuple(detection.id for detection in scene.fused[-1].detections)
        checks.that(said == ODD_IDS, f"ids came out as {said}")
    scene.settle()
    expected = {"dropped_empty_id": 2, "dropped_long_id": 2, "dropped_duplicate": 1}
    expected = {reason: rounds * count for reason, count in expected.items()}
    scene.check_counts(checks, "perception", "right", expected)
    return rounds * (5 + len(ODD_IDS))


@fault(
    "a tracker that gives every object of every frame a new id: 10,000 ids in ten seconds of message time",
    "never more tracks than `capacity` (200), the newest are kept",
)
def ten_thousand_ids(scene: Scene, checks: Checks) -> int:
    capacity, frames, each = 200, max(scene.times(100), 4), 100
    checks.that(scene.set_parameter("perception", "capacity", capacity).successful, "capacity not set")
    scene.forget_answers(FusionSettings(capacity=capacity))
    box = np.array([320.0, 240, 40, 40])
    most = 0
    for number in range(frames):
        shot = scene.road.next_of("left")
        ids = [f"{number}/{index}" for index in range(each)]
        shift = np.arange(each)[:, None] * np.array([1.0, 1, 0, 0])
        scene.step(with_boxes(shot, ids, box + shift))
        most = max(most, int(scene.diagnosed.of_node("perception").get("tracks", 0)))
    scene.settle()
    tracks = int(scene.diagnosed.of_node("perception")["tracks"])
    checks.that(max(most, tracks) <= capacity, f"{max(most, tracks)} tracks, capacity is {capacity}")
    checks.that(tracks == capacity, f"{tracks} tracks kept at the end, not {capacity}")
    checks.that(scene.set_parameter("perception", "capacity", 1000).successful, "capacity not reset")
    return frames * each


@fault(
    "each camera has a tracker of its own that gives the same ids to other objects; then both trackers "
    "report every frame of one camera",
    "with `identity: camera` no evidence crosses over; boxes of the second tracker find no image and "
    "are counted (`detections_without_image`)",
)
def two_trackers_one_id(scene: Scene, checks: Checks) -> int:
    asked = scene.set_parameter("perception", "identity", "camera")
    checks.that(asked.successful, "identity was not set")
    scene.forget_answers(identity="camera")
    injected = 0
    for _ in range(scene.times(40)):
        shot = scene.road.next()
        objects = scene.road.scene
        turned = objects.ids if shot.camera == "left" else objects.ids[::-1]  # other objects, same ids
        scene.step(with_boxes(shot, list(turned), objects.boxes))
        injected += len(turned)
    second = 15
    for _ in range(second):
        shot = scene.road.next_of("left")
        objects = scene.road.scene
        scene.step(shot)
        scene.send_boxes(with_boxes(shot, list(objects.ids[::-1]), objects.boxes))
    scene.settle()
    check_halves(scene, checks, "left", 0, second)
    asked = scene.set_parameter("perception", "identity", "global")
    checks.that(asked.successful, "identity was not set back")
    scene.forget_answers()
    return injected + second
