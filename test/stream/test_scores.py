from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.bundle.bundle import SCORES
from lla_fusion_ros.bundle.score_bundle import bundle_of, score_bundle, with_class_names
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import Listing, parse_detections, write_detections
from lla_fusion_ros.messages.status import parse_diagnostics, write_label_info
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.scores import DOUBT, ScoreReader
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import BundleError, InputError
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.result import Level

START, STEP = 10**12, 10**8


def said(number: int, ids=("a",), scores=(0.9,), classes=("car",)) -> bytes:
    """A message of boxes side by side, each with these scores."""
    boxes = np.array([[20.0 + 40 * row, 20.0, 0.0, 16.0, 16.0] for row in range(len(ids))]).reshape(-1, 5)
    told = Listing(class_names=classes, rest=False)
    each = np.tile(scores, (len(ids), 1)) if scores else None
    return write_detections(Header(START + number * STEP, "left"), ids, boxes, each, told)


def perception_of(*classes: str) -> Perception:
    return Perception(score_bundle(classes or ("car", "bus")), None, ["left"])


def pmf_of(reader: ScoreReader, *hypotheses, names=None):
    return reader.pmf(reader.claims(hypotheses, names or {}))


def test_what_scores_leave_of_one_is_that_nothing_is_there():
    reader = ScoreReader(score_bundle(("car", "truck", "bus")))
    assert reader.names() == ("car", "truck", "bus", "nothing_there")
    np.testing.assert_allclose(pmf_of(reader, ("car", 0.6)), [0.6, 0, 0, 0.4], atol=DOUBT)
    np.testing.assert_allclose(pmf_of(reader, ("truck", 0.1)), [0, 0.1, 0, 0.9], atol=DOUBT)
    listed = ("car", 0.2), ("bus", 0.5), ("truck", 0.1)
    np.testing.assert_allclose(pmf_of(reader, *listed), [0.2, 0.1, 0.5, 0.2], atol=DOUBT)
    np.testing.assert_allclose(pmf_of(reader, ("car", 0.9), ("bus", 0.6)), [0.6, 0, 0.4, 0], atol=DOUBT)


def test_a_score_bundle_of_before_spreads_the_rest_over_its_classes():
    old = score_bundle(("car", "truck", "bus"))
    meta = replace(old.meta, class_names=old.class_names[:3], reserved=(), architecture={"name": SCORES})
    reader = ScoreReader(bundle_of(meta))
    np.testing.assert_allclose(pmf_of(reader, ("car", 0.6)), [0.6, 0.2, 0.2], atol=DOUBT)
    np.testing.assert_allclose(pmf_of(reader, ("truck", 0.1)), [1 / 3, 1 / 3, 1 / 3], atol=DOUBT)


@pytest.mark.parametrize(("box_frame", "side"), [("image", 16.0), ("letterbox", None)])
def test_sizes_are_known_where_boxes_are_in_pixels_of_the_image(box_frame, side):
    wiring = CameraWiring(box_frame=box_frame, box_size=(640.0, 640.0))
    perception = Perception(score_bundle(("car",)), None, ["left"], wiring={"left": wiring})
    perception.offer("left", "detections", said(0))
    (fused,) = perception.step()
    assert fused.frame.views.size == (None if side is None else [side])


@pytest.mark.parametrize("score", [0.0, -1.0, float("nan")])
def test_a_class_without_a_usable_score_says_nothing(score):
    reader = ScoreReader(score_bundle())
    assert pmf_of(reader, ("car", score)) is None
    assert pmf_of(reader) is None


def test_classes_are_named_as_they_come_and_only_so_many(monkeypatch):
    monkeypatch.setattr("lla_fusion_ros.stream.scores.PLACES", 2)
    reader = ScoreReader(score_bundle())
    pmf_of(reader, ("7", 0.9), names={"7": "car"})
    pmf_of(reader, ("2", 0.9))
    assert reader.names() == ("car", "2", "nothing_there") and reader.counted
    assert reader.names(2) == ("car", "nothing_there")  # of a frame before
    assert pmf_of(reader, ("9", 0.9)) is None  # no place is left


def test_a_class_that_comes_later_leaves_tracks_as_they_are():
    first, all_along = Perception(score_bundle(), None, ["left"]), perception_of("car", "bus")
    for number, what in enumerate(("car", "car", "bus", "car")):
        raw = said(number, scores=(0.7,), classes=(what,))
        shown = []
        for perception in (first, all_along):
            perception.offer("left", "detections", raw)
            shown.append(perception.step()[0].result.pmf)
    np.testing.assert_allclose(*shown, atol=0.01)


def test_a_label_info_or_a_list_decides_the_numbers(tmp_path):
    perception = Perception(score_bundle(), None, ["left"])
    perception.offer("left", "detections/label_info", write_label_info(Header(0, ""), ("bus", "car")))
    perception.offer("left", "detections", said(0, scores=(0.9,), classes=("1",)))  # by number
    assert perception.step()[0].result.pmf.argmax() == 1
    for hostile in (("a", "nothing_there"), tuple(map(str, range(2000))), ()):
        other = Perception(score_bundle(), None, ["left"])
        other.offer("left", "detections/label_info", write_label_info(Header(0, ""), hostile))
        other.offer("left", "detections", said(0))
        other.step()
        assert other.scores.names() == ("car", "nothing_there")
    assert perception.scores.names() == ("bus", "car", "nothing_there") and not perception.scores.counted
    (tmp_path / "coco.names").write_text("bus\ncar\n\n")
    for text in ("bus, car", str(tmp_path / "coco.names")):
        assert with_class_names(score_bundle(), text).named_classes == ("bus", "car")
    for text in ("bus, bus", "nothing_there, car", str(tmp_path / "none")):
        with pytest.raises(InputError, match="nothing_there|class_names"):
            with_class_names(score_bundle(), text)


def test_an_object_over_empty_road_is_listed_as_nothing_first_and_where_few_are_listed():
    perception = perception_of("car", "bus", "tram")
    for number, score in enumerate((0.2, 0.3, 0.9, 0.9, 0.9)):
        perception.offer("left", "detections", said(number, scores=(score,)))
        (fused,) = perception.step()
        names = perception.scores.names()
        few = Listing(most=1, class_names=names, always=1)
        listed = parse_detections(fused_messages(fused, names, few)[0].data, True).scores[0]
        assert sum(p for _, p in listed) == pytest.approx(1)
        expected = ["nothing_there", ""] if number < 2 else ["car", "nothing_there", ""]
        assert [name for name, _ in listed] == expected or number == 2


def test_where_nothing_leads_it_is_warned_of_until_a_class_does():
    perception, told = perception_of("car", "bus"), []
    for number, score in enumerate((0.2, 0.2, 0.95, 0.95, 0.95, 0.95)):
        perception.offer("left", "detections", said(number, scores=(score,)))
        (fused,) = perception.step()
        (verdict,) = fused.result.verdicts
        told.append((verdict.reasons, verdict.level, fused.result.cleared))
        answer = Statements(perception.scores.names(), None, None, 0.9).track_status(fused)
        (status,) = parse_diagnostics(answer.data)[1]
        assert status.values["answer"] == ("nothing there" if verdict.reasons else "known")
    assert told[0] == (("nothing_there",), Level.WARN, ()) and told[-1] == ((), Level.OK, ())
    assert [cleared for *_, cleared in told].count(("left/a",)) == 1
    quiet = Perception(score_bundle(("car",)), None, ["left"], None, FusionSettings(warnings=False))
    quiet.offer("left", "detections", said(0, scores=(0.2,)))
    assert quiet.step()[0].result.verdicts[0].reasons == ()


def test_what_says_that_nothing_is_there_contradicts_no_camera():
    stream = StreamSettings(identity="global")
    perception = Perception(score_bundle(("car", "bus")), None, ["left", "right"], stream)
    for number in range(200):
        for camera, score in (("left", 0.97), ("right", 0.03)):
            perception.offer(camera, "detections", said(number, scores=(score,)))
            perception.step()
    assert not perception.troubles()


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
        listed = parse_detections(fused_messages(fused, perception.scores.names())[0].data)
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
