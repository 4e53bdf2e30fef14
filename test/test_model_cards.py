"""The table of numbers asked of the protocol ensemble says what the record says, and marks every miss."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import protocol_numbers  # noqa: E402  # a folder of scripts, not a package


def record(hard_ece=0.02, mixed_accuracy=0.99):
    results = [
        {
            "fuser": fuser,
            "regime": regime,
            "L": 10,
            "C": 5,
            "accuracy": mixed_accuracy if regime == "mixed" else 0.995,
            "ece": hard_ece if regime == "hard" else 0.01,
            "ece_if_calibrated": [0.005, 0.008],
        }
        for fuser in protocol_numbers.FUSERS
        for regime in protocol_numbers.REGIMES
    ]
    strange = [
        {"score": "combined", "regime": regime, "L": 10, "C": 5, "auroc": 0.99}
        for regime in protocol_numbers.REGIMES
    ]
    return {
        "bundle": {"networks": 5},
        "default_fuser": "pool",
        "results": results,
        "ood": strange,
        "single_frame": [{"regime": "clean", "C": 5, "accuracy": 0.98}],
    }


def test_a_record_that_reaches_everything_says_yes_for_every_fuser():
    rows = protocol_numbers.table([("seed 9", record())])[3:-1]
    assert len(rows) == len(protocol_numbers.FUSERS)
    assert all(row.endswith("| yes |") and "**" not in row for row in rows)


@pytest.mark.parametrize("miss", [{"hard_ece": 0.03004}, {"mixed_accuracy": 0.9849}])
def test_a_miss_by_a_hair_is_bold_and_said(miss):
    rows = protocol_numbers.table([("seed 9", record(**miss))])[3:-1]
    assert all(row.endswith("| no |") and row.count("**") == 2 for row in rows)
