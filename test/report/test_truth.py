"""Truth files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay.scenes import START

from lla_fusion_ros.report.truth import (
    FORMAT,
    FORMAT_BY_ID,
    LEAST_OVERLAP,
    OUTSIDE,
    UNSAID,
    Judge,
    Shown,
    Truth,
    TruthFrame,
    TruthSpan,
    matched,
    read_truth,
    write_truth,
)
from lla_fusion_ros.tracking.objects import overlap
from lla_fusion_ros.types.errors import InputError
from support.fused_frames import frame

BOX = (60.0, 40.0, 30.0, 30.0)  # of every object in `frame`
SHOWN = (Shown("a", "stop"), Shown("b", None))
BOXES = st.lists(st.tuples(*[st.floats(0, 30)] * 2, *[st.floats(1, 30)] * 2), max_size=8)


def by_boxes(shown=SHOWN, boxes=(BOX, (200.0, 40.0, 30.0, 30.0))) -> Truth:
    """Of the first frame."""
    return Truth({}, "toy", ("stop", "yield"), {("left", START): TruthFrame(boxes, shown)})


def test_what_is_written_is_read_again(tmp_path):
    ids = {"7": (TruthSpan(5, "stop"), TruthSpan(9, None)), "8": (TruthSpan(5, "yield"),)}
    frames = {**by_boxes().frames, ("right", 5): TruthFrame((), ())}
    names = ("stop", "yield")
    for truth, form in (
        (Truth(ids, "toy", names), FORMAT_BY_ID),
        (Truth({}, "toy", names, frames), FORMAT),
        (Truth({}), FORMAT),
    ):
        write_truth(truth, tmp_path / "truth.json")
        assert read_truth(tmp_path / "truth.json") == truth
        assert json.loads((tmp_path / "truth.json").read_text())["format"] == form


@given(BOXES, BOXES)
def test_boxes_match_one_to_one_and_the_largest_overlap_first(found, true):
    found, true = np.array(found).reshape(-1, 4), np.array(true).reshape(-1, 4)
    rows, worth = matched(found, true), overlap(found, true)
    taken = rows[rows >= 0].tolist()
    assert len(set(taken)) == len(taken)
    for row, column in np.argwhere(worth >= LEAST_OVERLAP):  # whoever goes without lost to a better pair
        rivals = [worth[row, rows[row]]] if rows[row] >= 0 else []
        rivals += worth[rows == column, column].tolist()
        assert rivals and max(rivals) >= worth[row, column]
    assert (worth[rows >= 0, taken] >= LEAST_OVERLAP).all()


def test_a_box_that_matches_nothing_is_told_from_one_that_is_not_judged():
    two = frame(0, ["1", "2"]).frame
    two.bbox[1, 0] = 400.0
    judged = by_boxes().judge(two)
    assert judged.shown == (SHOWN[0], None) and judged.nothing.tolist() == [False, True]
    assert judged.labels({"yield": 0, "stop": 1}).tolist() == [1, UNSAID]
    for other in (frame(1, ["1", "2"]), frame(0, ["1", "2"], camera="right")):
        judged = by_boxes().judge(other.frame)
        assert judged.shown == (None, None) and not judged.nothing.any()
    empty = by_boxes((), ()).judge(two)
    assert empty.shown == (None, None) and empty.nothing.all()


def test_a_box_is_one_object_and_its_id_plays_no_part():
    truth = by_boxes((Shown("a", "stop"), Shown("b", "yield")), (BOX, (62.0, 40.0, 30.0, 30.0)))
    both = frame(0, ["b", "a"]).frame
    both.bbox[0, 0] = 61.5
    assert truth.judge(both).labels({"stop": 0, "yield": 1}).tolist() == [1, 0]


def test_no_box_that_is_none_matches_anything():
    odd = frame(0, ["1", "2", "3"]).frame
    odd.bbox[0, 0], odd.bbox[1, 3], odd.bbox[2, 3:] = np.nan, np.inf, -30.0
    assert by_boxes().judge(odd).nothing.all()


def test_ids_are_judged_where_the_truth_goes_by_ids():
    truth = Truth({"7": (TruthSpan(0, "stop"), TruthSpan(START + 1, "zebra"))})
    assert truth.judge(frame(0, ["7", "8"]).frame).labels({"stop": 0}).tolist() == [0, UNSAID]
    assert truth.judge(frame(1, ["7", "8"]).frame).labels({"stop": 0}).tolist() == [OUTSIDE, UNSAID]


@pytest.mark.parametrize(
    ("truth", "scene", "reason"),
    [
        (by_boxes(), frame(3, ["1"]), "about left from stamp .* the bag about left from"),
        (by_boxes(), frame(0, ["1"], camera="front"), "about left from .* the bag about front"),
        (by_boxes(SHOWN, [(9.0, 9.0, 5.0, 5.0)] * 2), frame(0, ["1"]), "none of the 1 boxes at stamps"),
        (
            by_boxes((SHOWN[1],), (BOX,)),
            frame(0, ["1"]),
            "no view in the bag shows an object of a known class",
        ),
        (Truth({"7": (TruthSpan(0, "stop"),)}), frame(0, ["1"]), "goes by ids.*truth 2"),
    ],
)
def test_where_nothing_is_judged_the_reason_is_told(truth, scene, reason):
    judge = Judge(truth)
    judge(scene.frame)
    with pytest.raises(InputError, match=reason):
        raise InputError(judge.why_nothing())


def test_an_id_can_move_to_another_object():
    truth = Truth({"7": (TruthSpan(5, "stop"), TruthSpan(9, None))})
    assert truth.class_at("7", 4).class_name == "stop"
    assert truth.class_at("7", 8).class_name == "stop"
    assert truth.class_at("7", 9).class_name is None
    assert truth.class_at("unknown", 9) is None


def malformed(**frame) -> str:
    given = {"camera": "left", "stamp": 1, "boxes": [], **frame}
    return json.dumps({"format": FORMAT, "frames": [given]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "is not JSON"),
        ("[]", "does not say"),
        ('{"format": "lla_fusion_ros truth 3"}', "does not say.*truth 2.*truth 1"),
        (json.dumps({"format": FORMAT_BY_ID, "tracks": {"7": [{}]}}), "track entries are malformed"),
        (
            f'{{"format": "{FORMAT_BY_ID}", "tracks": {{"7": [{{"since": 1e999, "class": "a"}}]}}}}',
            "malformed",
        ),
        ("[" * 200_000, "nested too deeply"),
        (json.dumps({"format": FORMAT, "frames": [], "class_names": 5}), "class_names.*is '5', not a list"),
        (json.dumps({"format": FORMAT, "tracks": {}}), "frame entries are malformed"),
        (json.dumps({"format": FORMAT, "frames": [{}]}), "malformed"),
        (malformed(stamp=1e999), "malformed"),
        (malformed(boxes=[{"box": [1, 2, 3], "object": "7", "class": "a"}]), "malformed"),
        (malformed(boxes=[{"box": [1, 2, 3, 1e999], "object": "7", "class": "a"}]), "is not finite"),
        (malformed(boxes=[{"box": [1, 2, 3, 4], "object": "7"}]), "malformed"),
        (json.dumps({"format": FORMAT, "frames": [{"camera": "a", "stamp": 1, "boxes": []}] * 2}), "twice"),
    ],
)
def test_what_is_not_a_truth_file_is_refused(tmp_path, text, reason):
    (tmp_path / "truth.json").write_text(text)
    with pytest.raises(InputError, match=reason) as error:
        read_truth(tmp_path / "truth.json")
    assert len(str(error.value)) < 600
    with pytest.raises(InputError, match="cannot be read"):
        read_truth(tmp_path / "none.json")
