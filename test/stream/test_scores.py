from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import Listing, parse_detections, write_detections
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.scores import DOUBT, ScoreReader
from lla_fusion_ros.stream.stream_settings import CameraWiring
from lla_fusion_ros.types.errors import BundleError

START, STEP = 10**12, 10**8


def said(number: int, ids=("a",), scores=(0.9,), classes=("car",)) -> bytes:
    """A message of boxes side by side, each with these scores."""
    boxes = np.array([[20.0 + 40 * row, 20.0, 0.0, 16.0, 16.0] for row in range(len(ids))]).reshape(-1, 5)
    told = Listing(class_names=classes, rest=False)
    each = np.tile(scores, (len(ids), 1)) if scores else None
    return write_detections(Header(START + number * STEP, "left"), ids, boxes, each, told)


def perception_of(*classes: str) -> Perception:
    return Perception(score_bundle(classes or ("car", "bus"), places=2), None, ["left"])


def test_the_rest_of_one_score_is_spread_evenly_and_a_low_one_still_names_the_best_class():
    reader = ScoreReader(score_bundle(("car", "truck", "bus"), places=3))
    np.testing.assert_allclose(reader.pmf((("car", 0.6),), {}), [0.6, 0.2, 0.2], atol=DOUBT)
    np.testing.assert_allclose(reader.pmf((("truck", 0.1),), {}), [1 / 3, 1 / 3, 1 / 3], atol=DOUBT)
    listed = (("car", 0.2), ("bus", 0.7), ("truck", 0.1))
    np.testing.assert_allclose(reader.pmf(listed, {}), [0.2, 0.1, 0.7], atol=DOUBT)


@pytest.mark.parametrize(("box_frame", "side"), [("image", 16.0), ("letterbox", None)])
def test_sizes_are_known_where_boxes_are_in_pixels_of_the_image(box_frame, side):
    wiring = CameraWiring(box_frame=box_frame, box_size=(640.0, 640.0))
    perception = Perception(score_bundle(("car",), places=2), None, ["left"], wiring={"left": wiring})
    perception.offer("left", "detections", said(0))
    (fused,) = perception.step()
    assert fused.frame.views.size == (None if side is None else [side])


@pytest.mark.parametrize("score", [0.0, -1.0, float("nan")])
def test_a_class_without_a_usable_score_says_nothing(score):
    reader = ScoreReader(score_bundle())
    assert reader.pmf((("car", score),), {}) is None
    assert reader.pmf((), {}) is None


def test_classes_are_named_as_they_come_and_only_as_many_as_there_are_places():
    reader = ScoreReader(score_bundle(places=2))
    reader.pmf((("7", 0.9),), {"7": "car"})
    reader.pmf((("2", 0.9),), {})
    assert reader.names == ["car", "2"]
    assert reader.pmf((("9", 0.9),), {}) is None  # no place is left


def test_fusers_that_need_features_are_refused_with_those_that_do_not():
    with pytest.raises(BundleError, match="needs networks.*choose one of ema"):
        score_bundle().fuser("ella")


@pytest.mark.parametrize(
    ("empty", "lost"),
    [
        (dict(ids=()), ""),
        (dict(scores=()), "dropped_unknown_class"),
        (dict(scores=(0.0, 0.0), classes=("car", "bus")), "dropped_unknown_class"),
        (dict(classes=("tram",)), "dropped_unknown_class"),
        (dict(ids=("",), scores=(0.05,)), "not_tracked"),
    ],
)
def test_a_frame_in_which_no_box_remains_gives_an_empty_message_and_counts_once(empty, lost):
    perception = perception_of()
    for number, raw in enumerate((said(0, **empty), said(1, **empty), said(2))):
        assert perception.offer("left", "detections", raw)
        (fused,) = perception.step()
        listed = parse_detections(fused_messages(fused, perception.scores.names)[0].data)
        assert len(listed) == (number == 2) and listed.header.stamp == START + number * STEP
    counts = perception.tally.of("left")
    assert counts["frames"] == counts["fused_frames"] == counts["detections"] == 3
    left_out = {name: count for name, count in counts.items() if name.startswith(("dropped_", "not_"))}
    assert left_out == ({lost: 2} if lost else {})


BAD = st.floats().filter(lambda score: not -1e-6 <= score <= 1 + 1e-6)


@settings(deadline=None)
@given(good=st.lists(st.floats(0, 1), max_size=3), bad=BAD, row=st.integers(0, 2))
def test_a_message_with_a_score_that_is_no_probability_is_dropped_counted_and_told_of(good, bad, row):
    perception = perception_of("car", "bus", "van", "stop")
    scores = (*good[:row], bad, *good[row:])
    assert not perception.offer(
        "left", "detections", said(0, ("a", "b"), scores, ("car", "bus", "van", "stop"))
    )
    assert not perception.step() and not len(perception.queue.ready)
    assert perception.tally.of("left") == {"detections": 1, "dropped_bad_scores": 1}
    told = perception.troubles()["left"]
    assert told.startswith("left/detections says '") and f": {bad:g}'" in told and "percent" in told
    assert not perception.troubles()  # until another one comes


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_every_message_whose_scores_are_probabilities_is_a_frame(scores):
    perception = perception_of("car", "bus", "van", "stop")
    assert perception.offer("left", "detections", said(0, ("a",), scores, ("car", "bus", "van", "stop")))
    assert len(perception.step()) == 1 and not perception.troubles()


def test_a_score_that_single_precision_rounds_above_one_is_a_probability():
    perception = perception_of()
    assert perception.offer("left", "detections", said(0, scores=(float(np.nextafter(np.float32(1), 2)),)))
    (fused,) = perception.step()
    assert fused.result.ids == ("left/a",)


def test_what_is_told_of_a_bad_score_is_short_and_steers_no_terminal():
    perception = perception_of()
    perception.offer("left", "detections", said(0, scores=(255.0,), classes=("\x1b[31m" + "x" * 10_000,)))
    told = perception.troubles()["left"]
    assert told.isprintable() and len(told) < 500
