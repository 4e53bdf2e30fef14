"""Message time of several cameras."""

from __future__ import annotations

import pytest

from lla_fusion_ros.engine.clock import PATIENCE, MessageClock

SECOND = 1_000_000_000
START = 1_000 * SECOND
OK = "accepted"

# What comes, as camera and seconds after START, and what is said of each.
STORIES = {
    "frames in order": [("front", i, OK) for i in range(5)],
    "a frame slightly behind": [("front", 0, OK), ("left", -0.5, OK)],
    "a frame too far behind": [("front", 0, OK), ("front", -1, "late")],
    "a camera that goes back is a jump once": [
        *(("front", i, OK) for i in range(3)), ("front", -60, "jump"), ("front", -59, OK),
    ],
    "a camera that always lags is late and no jump": [
        ("slow", -3, OK),
        *(story for i in range(PATIENCE - 1) for story in (("front", i, OK), ("slow", i - 3, "late"))),
    ],
    "frames sent before a bag looped do not jump forward again": [
        ("front", 0, OK), ("left", 0, OK), ("front", -60, "jump"), ("left", 0.1, "late"),
        ("left", -59.9, OK), ("front", -59.8, OK),
    ],
    "stamps of the future, twice, do not silence the other camera for long": [
        ("front", 0, OK), ("left", 0, OK), ("left", 3600, OK), ("left", 3601, OK),
        *(("front", i / 10, "late") for i in range(1, PATIENCE)), ("front", 5, "jump"), ("front", 5.1, OK),
    ],
    "the camera with the wrong stamp recovers with its next frame": [
        ("front", 0, OK), ("front", 3600, OK), ("front", 1, "jump"), ("front", 2, OK),
    ],
    "an unknown camera of an older recording opens a new epoch": [
        ("front", 0, OK), ("other", -500, "jump"),
    ],
    "a clock that stepped ahead for good is followed": [
        ("front", 0, OK), ("left", 0, OK), ("front", 3600, OK), ("left", 3600, OK),
        ("left", 1, "jump"),  # both were there: it is left's own step back
    ],
    **{
        f"a single frame of the future costs {camera} no frame": [
            ("front", 0, OK), ("left", 0, OK), ("front", 3600, OK), (camera, 0.3, "jump"),
            ("front", 0.4, OK), ("left", 0.4, OK),
        ]
        for camera in ("front", "left")
    },
}  # fmt: skip


def make_clock() -> MessageClock:
    return MessageClock(max_lateness=SECOND // 2, clock_jump=2 * SECOND)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_what_is_said_of_each_frame_and_time_goes_back_only_with_a_jump(story) -> None:
    clock, newest = make_clock(), 0
    for camera, seconds, expected in story:
        stamp = START + round(seconds * SECOND)
        assert clock.judge(camera, stamp) == expected, (camera, seconds)
        newest = stamp if expected == "jump" else max(newest, stamp) if expected == OK else newest
        assert clock.newest == newest


def test_an_unset_stamp_is_refused() -> None:
    clock = make_clock()
    clock.judge("front", START)
    assert clock.judge("front", 0) == clock.judge("front", -5) == "no_stamp"
    assert clock.newest == START
