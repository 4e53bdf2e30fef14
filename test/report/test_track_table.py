"""What a replay tells of every track."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lla_fusion_ros.report.track_table import TrackTable
from support.fused_frames import frame

NAMES = ("stop", "yield", "bend")


def table_of(frames) -> TrackTable:
    table = TrackTable(NAMES)
    for fused in frames:
        table.take(fused.frame.header.stamp, fused)
    return table


def test_a_warning_is_told_from_its_first_view_to_its_last():
    warned = {2, 3, 6}
    table = table_of(frame(index, ["7"], warned=index in warned, pixels=False) for index in range(8))
    told = [(each["first"], each["last"], each["views"]) for each in table.warnings()]
    assert told == [(pytest.approx(1000.2), pytest.approx(1000.3), 2), (pytest.approx(1000.6),) * 2 + (1,)]
    assert {each["reason"] for each in table.warnings()} == {"out_of_distribution"}
    (track,) = table.tracks()
    assert track["warned_views"] == 3 and track["reasons"] == ["out_of_distribution"]
    assert track["class"] == "stop" and track["views"] == {"left": 8}


def test_views_of_one_object_by_several_cameras_are_one_record():
    frames = [frame(0, ["7"], camera="left"), frame(0, ["7"], camera="right")]
    assert [track["views"] for track in table_of(frames).tracks()] == [{"left": 1, "right": 1}]


def test_a_track_that_begins_again_was_a_switch_unless_its_class_is_one_that_changes():
    fused = frame(0, ["7"])
    for changed, reasons in (((), ["identity_switch"]), (("7",), [])):
        again = replace(fused, result=replace(fused.result, restarted=("7",), changed=changed))
        assert table_of([again]).tracks()[0]["reasons"] == reasons
