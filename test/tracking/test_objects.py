"""Objects in space beside the boxes of a camera."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.tracking.objects import BEGIN, FARTHEST, REMEMBERED, Objects, Partners, hidden, overlap

SECOND = 1_000_000_000


def in_space(stamp: float, places: dict[str, tuple[float, float, float]], frame: str = "odom"):
    count = len(places)
    centre = np.array(list(places.values()), float).reshape(-1, 3)
    turn = np.tile([0.0, 0, 0, 1], (count, 1))
    return FrameDetections3D(
        Header(round(stamp * SECOND), frame), centre, turn, np.ones((count, 3)), tuple(places), None, "global"
    )


def shown(boxes: dict[str, tuple[float, float, float, float]]) -> FrameDetections:
    bbox = np.insert(np.array(list(boxes.values()), float).reshape(-1, 4), 2, 0.0, axis=1)
    return FrameDetections(Header(0, ""), bbox, tuple(boxes), None, "global")


def rastered(first, second) -> float:
    """IoU counted in small squares."""
    x, y = np.meshgrid(np.arange(0, 60, 0.1) + 0.05, np.arange(0, 60, 0.1) + 0.05)
    inside = [(np.abs(x - cx) <= w / 2) & (np.abs(y - cy) <= h / 2) for cx, cy, w, h in (first, second)]
    return float((inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum())


def test_overlap_is_intersection_over_union_and_none_of_what_is_no_box() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.uniform([10, 10, 5, 5], [50, 50, 20, 20], (6, 4)) for _ in range(2))
    counted = [[rastered(a, b) for b in second] for a in first]
    np.testing.assert_allclose(overlap(first, second), counted, atol=0.02)
    strange = np.array([[np.nan, 1, 1, 1], [1, 1, -1, 1], [np.inf, 1, 1, 1], [1, 1, 0, 0]])
    assert not overlap(strange, strange).any()


def test_what_a_nearer_box_covers_is_hidden() -> None:
    boxes = np.array([[20.0, 20, 10, 10], [21, 20, 8, 8], [28, 20, 10, 10], [20, 20, 40, 40]])
    assert hidden(boxes).tolist() == [False, True, False, False]
    assert hidden(np.empty((0, 4))).tolist() == []


@pytest.mark.parametrize(
    ("stamps", "at", "expected"),
    [
        ((1.0, 1.1), 1.05, 0.45),  # between
        ((1.0, 1.1), 1.2, 1.8),  # on as it was
        ((1.0, 1.02, 1.04), 1.1, 0.36),  # too near one another to tell a speed
        ((1.0,), 1.2, 0.0),
        ((1.0, 1.1), 0.9, 0.0),  # before all
    ],
)
def test_an_object_is_where_it_moves_to_until_the_image(stamps, at, expected) -> None:
    objects = Objects()
    for stamp in stamps:
        objects.take(in_space(stamp, {"a": (9.0 * (stamp - 1), 0, 0), "b": (1, 2, 3)}))
    found = objects.at(round(at * SECOND))
    np.testing.assert_allclose(found.centre, [[expected, 0, 0], [1, 2, 3]], atol=1e-9)
    assert found.header.stamp == round(at * SECOND)


def test_objects_of_another_frame_or_time_are_not_mixed() -> None:
    objects = Objects()
    assert not len(objects.at(SECOND))
    objects.take(in_space(5.0, {"a": (0, 0, 0)}))
    objects.take(in_space(5.1, {"a": (7, 0, 0)}, "base_link"))
    assert objects.at(round(5.04 * SECOND)).centre[0, 0] == 0
    assert not len(objects.at(round(5.1 * SECOND) + FARTHEST + 1))
    objects.take(in_space(1.0, {"a": (3, 0, 0)}))  # the clock went back
    assert not len(objects.at(5 * SECOND)) and objects.at(SECOND).centre[0, 0] == 3


@pytest.mark.parametrize("seed", range(20))
def test_boxes_and_objects_are_matched_as_the_best_of_all_ways(seed) -> None:
    rng = np.random.default_rng(seed)
    boxes, others = (rng.uniform([10, 10, 8, 8], [30, 30, 20, 20], (4, 4)) for _ in range(2))
    objects = shown({f"o{i}": tuple(box) for i, box in enumerate(others)})
    names, left = Partners().match(SECOND, ["t0", "t1", "t2", "t3"], boxes, objects)
    worth = overlap(boxes, others)
    worth[worth < BEGIN] = 0
    best = max(sum(worth[i, p[i]] for i in range(4)) for p in permutations(range(4)))
    matched = [(row, int(name[1:])) for row, name in enumerate(names) if name.startswith("o")]
    assert sum(worth[pair] for pair in matched) == pytest.approx(best)
    assert sorted({column for _, column in matched} | set(left)) == [0, 1, 2, 3]
    assert all(names[row] == f"t{row}" for row in range(4) if row not in dict(matched))


BOX = (20.0, 20.0, 10.0, 10.0)
AWAY = (50.0, 20.0, 10.0, 10.0)


def test_a_track_stays_its_object_until_the_objects_say_otherwise() -> None:
    partners, box = Partners(), np.array([BOX])
    names = lambda stamp, objects: partners.match(round(stamp * SECOND), ["left/1"], box, shown(objects))[0]  # noqa: E731
    assert names(1.0, {}) == ["left/1"]
    assert names(1.1, {"car": BOX}) == ["car"]
    assert names(1.2, {}) == ["car"]  # missing from a message
    assert names(1.3, {"car": (26.0, 20.0, 10.0, 10.0)}) == ["car"]  # less overlap than it takes to begin
    assert names(1.4, {"car": AWAY}) == ["left/1"]  # it is somewhere else
    assert names(1.5, {"bus": BOX}) == ["bus"]
    assert partners.members("bus") == ("bus", "left/1") and partners.members("car") == ("car",)
    assert names(1.5 + REMEMBERED / SECOND + 0.1, {}) == ["left/1"]  # for too long


def test_one_object_has_one_box_of_a_camera_and_tracks_of_all() -> None:
    partners = Partners()
    partners.match(SECOND, ["left/1"], np.array([BOX]), shown({"car": BOX}))
    partners.match(SECOND, ["right/7"], np.array([AWAY]), shown({"car": AWAY}))
    assert partners.members("car") == ("car", "left/1", "right/7")
    names, left = partners.match(SECOND, ["left/1", "left/2"], np.array([BOX, BOX]), shown({"car": BOX}))
    assert sorted(names)[0] == "car" and names.count("car") == 1 and left == []
    partners.match(SECOND, ["left/1", "left/2"], np.array([AWAY, BOX]), shown({"car": BOX}))
    names, _ = partners.match(SECOND, ["left/1", "left/2"], np.array([AWAY, BOX]), shown({}))
    assert names.count("car") == 1  # both were it once


def test_objects_without_id_name_nothing_and_strange_boxes_stay_their_tracks() -> None:
    partners = Partners()
    strange = np.array([[np.nan, 0, 1, 1], [1e300, 0, 1e300, 1e300], [0, 0, -1, 1]])
    names, left = partners.match(SECOND, ["a", "b", ""], strange, shown({"": BOX, "x": BOX}))
    assert names == ["a", "b", ""] and left == [1]


def test_what_is_remembered_is_bounded() -> None:
    partners = Partners()
    for step in range(3000):
        stamp = SECOND + step * SECOND // 10
        partners.match(stamp, [f"left/{step}"], np.array([BOX]), shown({f"o{step // 100}": BOX}))
    assert len(partners._partner) <= 30 and len(partners._objects) <= 10
    assert len(partners.members("o29")) <= 13
