"""The state behind the live table."""

from __future__ import annotations

import json

from lla_fusion_ros.demo.live import LiveState

SECOND = 10**9


def fused(second: float, **tracks: list[float]) -> str:
    listed = [{"id": name, "class": 3, "p": max(pmf), "pmf": pmf} for name, pmf in tracks.items()]
    return json.dumps({"event": "fused", "stamp": int(second * SECOND), "tracks": listed})


def test_single_frames_fused_class_and_warning_come_together():
    state = LiveState()
    seen = [{"id": "a", "class": 5, "p": 0.4}]
    state.take(json.dumps({"event": "views", "camera": "left", "tracks": seen}))
    state.take(fused(10, a=[1.0, 0.0]))
    warned = [{"id": "a", "level": 1, "reason": "identity_switch"}]
    state.take(json.dumps({"event": "warnings", "tracks": warned}))
    (track,) = state.in_view()
    assert track.single == {"left": (5, 0.4)}
    assert track.fused == (3, 1.0) and track.entropy == 0.0
    assert track.warning == "identity_switch" and state.warned == {"a"}


def test_a_cleared_warning_goes_but_is_remembered():
    state = LiveState()
    state.take(fused(10, a=[1.0, 0.0]))
    for level in (1, 0):
        state.take(json.dumps({"event": "warnings", "tracks": [{"id": "a", "level": level, "reason": "x"}]}))
    assert state.in_view()[0].warning == ""
    assert state.warned == {"a"}


def test_tracks_leave_the_table_when_they_leave_the_view():
    state = LiveState()
    state.take(fused(10, old=[1.0, 0.0]))
    state.take(fused(15, new=[0.25] * 4))
    (track,) = state.in_view()
    assert track.id == "new" and abs(track.entropy - 1.0) < 1e-9
    assert state.seconds == 5.0 and state.fused_views == 2


def test_lines_that_are_not_ours_are_ignored():
    state = LiveState()
    for line in ("", "hello", "[1]", "3", '{"no": "event"}'):
        state.take(line)
    assert state.in_view() == []


def test_a_class_change_is_shown_for_a_moment_and_counted():
    state = LiveState()
    state.take(fused(10, light=[1.0, 0.0]))
    told = [{"id": "light", "members": [], "changed": True}]
    state.take(json.dumps({"event": "states", "stamp": 10 * SECOND, "tracks": told}))
    assert state.changed(state.in_view()[0]) and state.changes == 1
    for second in (11, 12):
        state.take(fused(second, light=[1.0, 0.0]))
    assert not state.changed(state.in_view()[0])


def states(*tracks: tuple[str, str]) -> str:
    listed = [{"id": name, "members": members.split(), "changed": False} for name, members in tracks]
    return json.dumps({"event": "states", "stamp": 10 * SECOND, "tracks": listed})


def views(camera: str, track: str, label: int) -> str:
    seen = [{"id": track, "class": label, "p": 0.5}]
    return json.dumps({"event": "views", "camera": camera, "tracks": seen})


def test_tracks_that_are_one_object_are_one_row_until_they_are_two_again():
    state = LiveState()
    for camera, track in (("left", "left/1"), ("right", "right/1")):
        state.take(views(camera, track, 3))
        state.take(fused(10, **{track: [1.0, 0.0]}))
    assert [track.id for track in state.in_view()] == ["left/1", "right/1"]
    state.take(states(("left/1", "left/1 right/1")))
    state.take(views("right", "right/1", 5))
    (track,) = state.in_view()
    assert track.id == "left/1" and track.single == {"left": (3, 0.5), "right": (5, 0.5)}
    state.take(states(("right/1", "")))
    state.take(views("right", "right/1", 7))
    state.take(fused(10, **{"right/1": [1.0, 0.0]}))
    assert [track.id for track in state.in_view()] == ["left/1", "right/1"]
    assert state.in_view()[1].single == {"right": (7, 0.5)}


def test_a_track_that_was_seen_and_not_fused_is_no_row_yet():
    state = LiveState()
    state.take(fused(10, a=[1.0, 0.0]))
    state.take(views("left", "left/2", 3))
    assert [track.id for track in state.in_view()] == ["a"]
