"""Detections that would be fused wrongly in silence are named; ordinary ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.detections import FrameDetections, Traps
from lla_fusion_ros.messages.cdr import Header

IMAGE = (1280, 720)


def frame(ids, boxes, classes=None, step=0):
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    bbox = np.insert(boxes, 2, 0.0, axis=1)
    scores = None if classes is None else tuple(((name, 0.9),) for name in classes)
    return FrameDetections(
        Header(step, ""),
        bbox,
        None if ids is None else tuple(ids),
        scores,
        "none" if ids is None else "camera",
    )


def passing(step):
    """Two objects that come nearer and leave on the left and on the right."""
    way = step % 25
    size = 20 + 4 * way
    return [[600 - 20 * way, 300, size, size], [680 + 22 * way, 320, size, size]]


def traps(*frames, image_size=IMAGE):
    watch = Traps()
    for own in frames:
        watch.feed("front", own, image_size)
    return {finding.trap: finding for finding in watch.findings}


def test_an_ordinary_camera_gives_no_findings():
    frames = [frame(["1", "2"], passing(step), ["14", "2"], step) for step in range(200)]
    assert traps(*frames) == {}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wild", [1e308, 1e200, np.inf, np.nan])
def test_boxes_that_cannot_be_are_passed_over_without_a_word(wild):
    frames = [frame(["1", "2"], [passing(step)[0], [9, 9, wild, wild]], ["14", "2"]) for step in range(50)]
    assert traps(*frames) == {}


def test_ids_that_are_classes_are_named():
    frames = [frame(["14", "2"], passing(step), ["14", "2"]) for step in range(20)]
    found = traps(*frames)
    assert "every id of front equals the class of its box ('14', '2')" in found["class_as_id"].sentence
    twice = [frame(["14", "14"], passing(step), ["14", "14"]) for step in range(20)]
    assert "class_as_id" in traps(*twice)


def test_one_object_may_bear_its_classs_number():
    assert traps(*[frame(["1"], passing(step)[:1], ["1"]) for step in range(100)]) == {}


def test_a_finding_goes_when_its_cause_goes():
    frames = [frame(["14", "2"], passing(step), ["14", "2"]) for step in range(20)]
    assert "class_as_id" not in traps(*frames, frame(["3", "4"], passing(20), ["14", "2"]))


def test_ids_that_jump_in_every_frame_are_named():
    frames = [frame([str(2 * step), str(2 * step + 1)], passing(step)) for step in range(40)]
    assert "change in every frame" in traps(*frames)["jumping_ids"].sentence


def test_ids_are_not_said_to_jump_where_the_objects_are_others():
    rng = np.random.default_rng(0)
    places = rng.uniform(50, 650, (100, 1, 2))
    assert traps(*[frame([str(n)], [[*p[0], 30, 30]]) for n, p in enumerate(places)]) == {}


@pytest.mark.parametrize("network", [(640, 360), (416, 416)])
def test_boxes_in_another_images_pixels_are_named(network):
    scale = np.tile(np.array(network) / IMAGE, 2)
    frames = [frame(None, np.array(passing(step)) * scale) for step in range(120)]
    found = traps(*frames)
    assert "seem to be in the pixels of another image" in found["corner"].sentence
    assert "front.box_frame" in found["corner"].sentence


def test_boxes_as_shares_of_the_image_are_named():
    frames = [frame(None, np.array(passing(step)) / np.tile(IMAGE, 2)) for step in range(20)]
    assert "shares of the image" in traps(*frames)["corner"].sentence


def test_objects_that_all_stand_on_the_left_are_no_trap():
    assert traps(*[frame(None, passing(step)[:1]) for step in range(400)]) == {}


def test_a_parked_vehicle_is_no_trap():
    assert traps(*[frame(["7"], [[300, 200, 50, 50]]) for _ in range(400)]) == {}


def test_two_cameras_that_mean_different_objects_by_one_id_are_named():
    watch = Traps()
    stop, entry, unsure = np.array([[0.99, 0.01]]), np.array([[0.01, 0.99]]), np.array([[0.4, 0.6]])
    for step in range(10):
        watch.feed_classes("left", step * 10**8, ("3",), stop)
        watch.feed_classes("right", step * 10**8 + 10**7, ("3",), unsure)
    assert watch.findings == ()
    for step in range(10, 20):
        watch.feed_classes("left", step * 10**8, ("3",), stop)
        watch.feed_classes("right", step * 10**8 + 10**7, ("3",), entry)
    (finding,) = watch.findings
    assert finding.trap == "contradicting_ids" and "both see an object '3'" in finding.sentence
    watch.reset()
    assert watch.findings == ()


def test_an_id_used_again_later_is_no_contradiction():
    watch = Traps()
    for step in range(20):
        watch.feed_classes("left", step * 10**8, ("3",), np.array([[0.99, 0.01]]))
    for step in range(100, 120):
        watch.feed_classes("right", step * 10**8, ("3",), np.array([[0.01, 0.99]]))
    assert watch.findings == ()


def test_bad_boxes_and_endless_new_ids_do_no_harm():
    watch = Traps()
    watch.feed("front", frame(["x"], [[np.nan, 0, -1, np.inf]], ["x"]), IMAGE)
    watch.feed("front", frame([], np.empty((0, 4))), IMAGE)
    ids = tuple(str(number) for number in range(5000))
    watch.feed_classes("front", 1, ids, np.tile([0.95, 0.05], (5000, 1)))
    boxes = np.tile([100.0, 100.0, 5.0, 5.0], (5000, 1))
    watch.feed("front", frame(ids, boxes, ids), IMAGE)
    watch.feed("front", frame(ids, boxes, ids), IMAGE)
