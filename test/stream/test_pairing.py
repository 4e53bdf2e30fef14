"""Pairing by stamps: nearest within tolerance, bounded in time and memory; stamps ahead are noticed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.stream.pairing import MOST_WAITING, REMEMBERED, STEP_BACK, Limits, StampMatcher

MS = 1_000_000
PICTURE = 6_000_000  # bytes


class Pairs(StampMatcher):
    """A matcher to which messages come at the time of their stamp, unless it is told otherwise."""

    def __init__(self, tolerance=0, offset=0, **limits):
        super().__init__(Limits(tolerance, **{"wait": 10**18, **limits}), offset)

    def first(self, stamp, message=None, now=0, size=0):
        return self.add_first(stamp, stamp if message is None else message, now, size)

    def second(self, stamp, message="boxes", now=0):
        return self.add_second(stamp, message, now)


def test_equal_stamps_are_paired_in_whichever_order_they_come():
    matcher = Pairs()
    assert matcher.first(10, "image 10") is None
    assert matcher.second(10, "boxes 10") == ("image 10", "boxes 10")
    assert matcher.second(20, "boxes 20") is None
    assert matcher.first(20, "image 20") == ("image 20", "boxes 20")


def test_the_nearest_within_the_tolerance_is_taken():
    matcher = Pairs(5)
    for stamp in (0, 8, 12):
        matcher.first(stamp, stamp)
    assert matcher.second(11, "boxes") == (12, "boxes")
    assert matcher.second(20, "too far") is None


def test_detections_whose_own_image_is_gone_do_not_take_its_neighbour():
    matcher = Pairs(12)
    matcher.first(10)
    assert matcher.second(10, "boxes") == (10, "boxes")
    matcher.first(20)
    assert matcher.second(11, "the same boxes again") is None
    assert matcher.first(22) is None
    assert matcher.second(20, "boxes") == (20, "boxes")


def test_the_offset_moves_the_second_stream():
    matcher = Pairs(offset=-3)
    matcher.first(10, "image")
    assert matcher.second(13, "boxes") == ("image", "boxes")


def test_what_has_waited_for_too_long_goes_and_is_counted():
    matcher = Pairs(wait=2000 * MS)
    for stamp in (1, 2):
        matcher.first(stamp, now=0)
        matcher.second(10 + stamp, now=1000 * MS)
    matcher.expire(2500 * MS)
    assert matcher.waiting == (1, 2) and matcher.take_losses() == {"first": 1}
    matcher.expire(3500 * MS)
    assert matcher.waiting == (1, 1) and matcher.take_losses() == {"second": 1}
    assert matcher.take_losses() == {}


def test_the_newest_message_waits_until_the_next_one_comes():
    matcher = Pairs(wait=2000 * MS)
    matcher.first(1, now=0)
    matcher.expire(9000 * MS)
    assert matcher.second(1, now=9000 * MS) == (1, "boxes")


def test_images_wait_in_bounded_memory_but_one_always_may():
    matcher = Pairs(memory=3 * PICTURE)
    for stamp in range(5):
        matcher.first(stamp, size=PICTURE)
    assert matcher.waiting == (2, 0) and matcher.take_losses()["first"] == 3
    matcher.first(9, size=100 * PICTURE)
    assert matcher.waiting == (1, 0)
    assert matcher.second(9) == (9, "boxes")
    matcher.first(10, size=PICTURE)
    matcher.first(11, size=PICTURE)
    assert matcher.waiting == (2, 0)


def test_a_flood_of_tiny_messages_is_bounded_too():
    matcher = Pairs()
    for stamp in range(MOST_WAITING + 5):
        matcher.first(stamp)
    assert matcher.waiting == (MOST_WAITING, 0) and matcher.take_losses()["first"] == 5


def test_a_backward_jump_needs_no_reset():
    matcher = Pairs()
    for stamp in range(100, 110):
        matcher.first(stamp, stamp)
    assert matcher.first(5, 5) is None
    assert matcher.second(5, "boxes") == (5, "boxes")


@settings(max_examples=60, deadline=None)
@given(st.permutations([(kind, stamp) for stamp in range(0, 60, 10) for kind in ("first", "second")]))
def test_every_order_of_arrival_gives_the_same_pairs(arrivals):
    matcher = Pairs(2)
    pairs = []
    for kind, stamp in arrivals:
        pair = matcher.first(stamp, stamp) if kind == "first" else matcher.second(stamp + 1, stamp)
        if pair:
            pairs.append(pair)
    assert sorted(pairs) == [(stamp, stamp) for stamp in range(0, 60, 10)]


def test_of_two_equally_near_messages_the_latest_arrival_is_taken():
    matcher = Pairs()
    matcher.first(10, "image of the first run")
    matcher.first(10, "image of the second run")
    assert matcher.second(10, "boxes") == ("image of the second run", "boxes")


def test_a_stream_that_steps_back_forgets_what_waits_from_the_time_ahead():
    matcher = Pairs()
    matcher.first(100 * STEP_BACK, "old image")
    matcher.second(101 * STEP_BACK, "old boxes")
    for stamp in (5, 6):
        assert matcher.first(stamp, f"image {stamp}") is None
        assert matcher.second(stamp, "boxes") == (f"image {stamp}", "boxes")
    assert matcher.waiting == (0, 0) and matcher.take_losses() == {"first": 1, "second": 1}
    assert matcher.second(100 * STEP_BACK, "boxes of the new time") is None


def test_a_single_unset_stamp_costs_no_good_message_its_partner():
    matcher = Pairs()
    for stamp in (100 * STEP_BACK, 0, 101 * STEP_BACK):
        assert matcher.first(stamp, stamp) is None
    for stamp in (100 * STEP_BACK, 0, 101 * STEP_BACK):
        assert matcher.second(stamp, "boxes") == (stamp, "boxes")


def test_boxes_that_lag_far_behind_the_images_are_paired():
    matcher = Pairs()
    for stamp in range(0, 50 * STEP_BACK, STEP_BACK):
        matcher.first(stamp, stamp)
    assert [matcher.second(stamp, "boxes") for stamp in (0, STEP_BACK)] == [
        (0, "boxes"),
        (STEP_BACK, "boxes"),
    ]


def stream(matcher, frames, period, delay, stamped=0):
    """Images of a camera, each followed after `delay` by its detections; (stamp, stamp) of the pairs.

    A negative delay sends detections before their image. `stamped` is added to the detections' stamps.
    """
    arrivals = [(number * period, "image", number * period) for number in range(frames)]
    arrivals += [(number * period + delay, "boxes", number * period) for number in range(frames)]
    pairs = []
    for now, kind, stamp in sorted(arrivals):
        pair = (
            matcher.first(stamp, now=now) if kind == "image" else matcher.second(stamp + stamped, stamp, now)
        )
        pairs += [pair] if pair else []
    return pairs


LEAD = 50 * MS


@pytest.mark.parametrize(
    ("period", "delay", "stamped"), [(100, 30, 200), (100, 30, 100), (100, 120, 200), (33, 8, 330)]
)
def test_detections_stamped_like_a_later_image_are_paired_with_none(period, delay, stamped):
    matcher = Pairs(10 * MS, wait=2000 * MS, lead=LEAD)
    assert stream(matcher, 120, period * MS, delay * MS, stamped * MS) == []
    matcher.finish()
    losses = matcher.take_losses()
    assert losses["second_early"] + losses["second"] == losses["first"] == 120
    assert losses["second_early"] == 120 - stamped // period


def test_how_far_detections_are_stamped_ahead_is_measured():
    matcher = Pairs(10 * MS, lead=LEAD)
    stream(matcher, 20, 100 * MS, 30 * MS, 200 * MS)
    assert matcher.misfit == ("second_early", 200 * MS)


@pytest.mark.parametrize("delay", [-20, -5, 0, 5, 400, 1900])
def test_detections_a_little_before_or_long_after_their_image_are_all_paired(delay):
    matcher = Pairs(10 * MS, wait=2000 * MS, lead=LEAD)
    assert stream(matcher, 60, 33 * MS, delay * MS) == [(33 * MS * n, 33 * MS * n) for n in range(60)]


def test_a_burst_after_a_stall_is_paired_whatever_comes_first():
    matcher = Pairs(lead=LEAD)
    for stamp in range(0, 20 * 100 * MS, 100 * MS):
        matcher.second(stamp, stamp, 5000 * MS)
    for stamp in range(0, 20 * 100 * MS, 100 * MS):
        assert matcher.first(stamp, now=5001 * MS) == (stamp, stamp)


def test_a_busy_node_that_takes_images_late_is_told_from_detections_that_come_early():
    matcher = Pairs(lead=LEAD)
    for number in range(20):
        now, stamp = number * 100 * MS, number * 100 * MS
        assert matcher.add_second(stamp, "boxes", now, received=stamp + 5 * MS) is None
        assert matcher.add_first(stamp, "image", now + 90 * MS, received=stamp) == ("image", "boxes")


def test_single_images_that_are_held_up_still_get_their_detections():
    matcher = Pairs(lead=LEAD)
    stream(matcher, REMEMBERED, 100 * MS, 30 * MS)
    now = 10_000 * MS
    for number in range(4):  # less than half of the pairs that are remembered
        matcher.second(now + number, "boxes", now)
    for number in range(4):
        assert matcher.first(now + number, now=now + 300 * MS) == (now + number, "boxes")


def test_detections_that_come_before_any_image_are_not_refused_because_the_first_images_are_late():
    matcher = Pairs(lead=LEAD)
    for number in range(3):
        assert matcher.second(number * 100 * MS, number, number * 100 * MS) is None
    for number in range(3):
        stamp = number * 100 * MS
        assert matcher.first(stamp, now=300 * MS + stamp) == (stamp, number)
    assert not matcher.take_losses()


@pytest.mark.parametrize("frames_ahead", [1, 4])
def test_wrong_stamps_are_noticed_also_where_the_first_detections_overtake_their_image(frames_ahead):
    matcher = Pairs(10 * MS, lead=LEAD)
    assert stream(matcher, 20, 100 * MS, -5 * MS, frames_ahead * 100 * MS) == []
    assert matcher.take_losses()["second_early"] == 20 - frames_ahead


def test_slow_images_are_waited_for_once_it_is_said_that_they_are_slow():
    assert stream(Pairs(lead=LEAD), 20, 100 * MS, -80 * MS) == [(0, 0)]  # no image had come before it
    assert len(stream(Pairs(lead=100 * MS), 20, 100 * MS, -80 * MS)) == 20


def test_detections_that_come_after_their_image_has_gone_are_too_late():
    matcher = Pairs(10 * MS, wait=300 * MS)
    assert stream(matcher, 60, 33 * MS, 400 * MS) == [(59 * 33 * MS, 59 * 33 * MS)]  # no image came after it
    matcher.finish()
    assert matcher.take_losses() == {"first": 59, "second_late": 59}
    assert matcher.misfit == ("second_late", 400 * MS)


def test_the_distance_to_the_nearest_stamp_is_measured():
    matcher = Pairs(10 * MS, wait=500 * MS)
    assert stream(matcher, 60, 100 * MS, 5 * MS, 30 * MS) == []
    assert matcher.misfit == ("second", 30 * MS) and matcher.take_losses()["second_late"] == 0
