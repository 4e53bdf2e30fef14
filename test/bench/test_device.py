"""What people with a GPU are asked to send."""

from __future__ import annotations

from bench.device import CROPS, report
from support.tiny_bundle import tiny_bundle


def test_the_report_names_the_machine_and_has_a_row_for_every_number_of_crops():
    text = report(tiny_bundle(classes=5, networks=2))
    assert "torch" in text and "device" in text
    rows = [line for line in text.splitlines() if line.startswith("| cpu | float32 |")]
    assert [int(row.split("|")[3]) for row in rows] == list(CROPS)
    assert all(float(row.split("|")[7]) == 0 for row in rows)  # the CPU agrees with itself
