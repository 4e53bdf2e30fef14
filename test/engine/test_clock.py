"""Message time of several cameras."""

from __future__ import annotations

from lla_fusion_ros.engine.clock import PATIENCE, MessageClock

SECOND = 1_000_000_000
START = 1_000 * SECOND


def make_clock() -> MessageClock:
    return MessageClock(max_lateness=SECOND // 2, clock_jump=2 * SECOND)


def test_frames_in_order_are_accepted() -> None:
    clock = make_clock()
    assert [clock.judge("front", START + i * SECOND) for i in range(5)] == ["accepted"] * 5
    assert clock.newest == START + 4 * SECOND


def test_a_frame_slightly_behind_is_accepted_and_time_does_not_go_back() -> None:
    clock = make_clock()
    clock.judge("front", START)
    assert clock.judge("left", START - SECOND // 2) == "accepted"
    assert clock.newest == START


def test_a_frame_too_far_behind_is_late() -> None:
    clock = make_clock()
    clock.judge("front", START)
    assert clock.judge("front", START - SECOND) == "late"


def test_an_unset_stamp_is_refused() -> None:
    clock = make_clock()
    clock.judge("front", START)
    assert clock.judge("front", 0) == "no_stamp"
    assert clock.judge("front", -5) == "no_stamp"
    assert clock.newest == START


def test_a_camera_that_goes_back_is_a_clock_jump_once() -> None:
    clock = make_clock()
    for i in range(3):
        clock.judge("front", START + i * SECOND)
    back = START - 60 * SECOND
    assert clock.judge("front", back) == "jump"
    assert clock.judge("front", back + SECOND) == "accepted"
    assert clock.newest == back + SECOND


def test_a_camera_that_always_lags_is_late_and_no_jump() -> None:
    clock = make_clock()
    clock.judge("slow", START - 3 * SECOND)
    for i in range(PATIENCE - 1):
        assert clock.judge("front", START + i * SECOND) == "accepted"
        assert clock.judge("slow", START + (i - 3) * SECOND) == "late"


def test_old_frames_still_under_way_after_a_jump_do_not_jump_forward_again() -> None:
    clock = make_clock()
    for camera in ("front", "left"):
        clock.judge(camera, START)
    back = START - 60 * SECOND
    assert clock.judge("front", back) == "jump"
    assert clock.judge("left", START + SECOND // 10) == "late"  # sent before the bag looped
    assert clock.judge("left", back + SECOND // 10) == "accepted"
    assert clock.judge("front", back + SECOND // 5) == "accepted"


def test_stamps_from_the_future_do_not_silence_the_other_cameras() -> None:
    clock = make_clock()
    for camera in ("front", "left"):
        clock.judge(camera, START)
    clock.judge("left", START + 3600 * SECOND)
    clock.judge("left", START + 3601 * SECOND)  # a second one: the clock may have stepped ahead for good
    answers = [clock.judge("front", START + i * SECOND // 10) for i in range(1, PATIENCE + 2)]
    assert answers[:-2] == ["late"] * (PATIENCE - 1)
    assert answers[-2:] == ["jump", "accepted"]


def test_the_camera_with_the_wrong_stamp_recovers_with_its_next_frame() -> None:
    clock = make_clock()
    clock.judge("front", START)
    clock.judge("front", START + 3600 * SECOND)
    assert clock.judge("front", START + SECOND) == "jump"
    assert clock.judge("front", START + 2 * SECOND) == "accepted"


def test_an_unknown_camera_of_an_older_recording_opens_a_new_epoch() -> None:
    clock = make_clock()
    clock.judge("front", START)
    assert clock.judge("other", START - 500 * SECOND) == "jump"


def test_a_single_frame_from_the_future_costs_no_camera_its_next_frame() -> None:
    for camera in ("front", "left"):
        clock = make_clock()
        for i in range(3):
            clock.judge("front", START + i * SECOND // 10)
            clock.judge("left", START + i * SECOND // 10)
        assert clock.judge("front", START + 3600 * SECOND) == "accepted"
        assert clock.judge(camera, START + 3 * SECOND // 10) == "jump"
        assert clock.judge("front", START + 4 * SECOND // 10) == "accepted"
        assert clock.judge("left", START + 4 * SECOND // 10) == "accepted"


def test_a_clock_that_stepped_ahead_for_good_is_followed() -> None:
    clock = make_clock()
    for i in range(3):
        clock.judge("front", START + i * SECOND // 10)
        clock.judge("left", START + i * SECOND // 10)
    later = START + 3600 * SECOND
    assert [clock.judge("front", later), clock.judge("left", later)] == ["accepted", "accepted"]
    assert clock.judge("left", START + SECOND) == "jump"  # both were there: it is left's own step back
    assert clock.newest == START + SECOND
