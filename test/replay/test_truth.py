"""Truth files."""

from __future__ import annotations

import json

import pytest

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.replay.truth import FORMAT, Truth, TruthSpan, read_truth, write_truth


def test_what_is_written_is_read_again(tmp_path):
    truth = Truth(
        {"7": (TruthSpan(5, "stop"), TruthSpan(9, None)), "8": (TruthSpan(5, "yield"),)},
        "toy",
        ("stop", "yield"),
    )
    write_truth(truth, tmp_path / "truth.json")
    assert read_truth(tmp_path / "truth.json") == truth


def test_an_id_can_move_to_another_object():
    truth = Truth({"7": (TruthSpan(5, "stop"), TruthSpan(9, None))})
    assert truth.class_at("7", 4).class_name == "stop"
    assert truth.class_at("7", 8).class_name == "stop"
    assert truth.class_at("7", 9).class_name is None
    assert truth.class_at("unknown", 9) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "is not JSON"),
        ("[]", "does not say"),
        (json.dumps({"format": FORMAT, "tracks": {"7": [{}]}}), "malformed"),
        (f'{{"format": "{FORMAT}", "tracks": {{"7": [{{"since": 1e999, "class": "a"}}]}}}}', "malformed"),
        ("[" * 200_000, "nested too deeply"),
        (json.dumps({"format": FORMAT, "tracks": {}, "class_names": 5}), "class_names.*is '5', not a list"),
    ],
)
def test_what_is_not_a_truth_file_is_refused(tmp_path, text, reason):
    (tmp_path / "truth.json").write_text(text)
    with pytest.raises(InputError, match=reason):
        read_truth(tmp_path / "truth.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_truth(tmp_path / "none.json")
