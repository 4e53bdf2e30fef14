"""Pairing by stamps: nearest within tolerance, bounded, order does not matter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.stream.pairing import STEP_BACK, StampMatcher


def test_equal_stamps_are_paired_in_whichever_order_they_come():
    matcher = StampMatcher(0, depth=4)
    assert matcher.add_first(10, "image 10") is None
    assert matcher.add_second(10, "boxes 10") == ("image 10", "boxes 10")
    assert matcher.add_second(20, "boxes 20") is None
    assert matcher.add_first(20, "image 20") == ("image 20", "boxes 20")


def test_the_nearest_within_the_tolerance_is_taken():
    matcher = StampMatcher(5, depth=4)
    for stamp in (0, 8, 12):
        matcher.add_first(stamp, stamp)
    assert matcher.add_second(11, "boxes") == (12, "boxes")
    assert matcher.add_second(20, "too far") is None


def test_the_offset_moves_the_second_stream():
    matcher = StampMatcher(0, depth=4, offset=-3)
    matcher.add_first(10, "image")
    assert matcher.add_second(13, "boxes") == ("image", "boxes")


def test_a_full_line_loses_its_oldest_arrival_and_counts_it():
    matcher = StampMatcher(0, depth=2)
    for stamp in (3, 2, 1):
        matcher.add_first(stamp, stamp)
    assert matcher.unpaired_first == 1
    assert matcher.add_second(3, "boxes") is None
    assert matcher.add_second(2, "boxes") == (2, "boxes")


def test_a_backward_jump_needs_no_reset():
    matcher = StampMatcher(0, depth=3)
    for stamp in range(100, 110):
        matcher.add_first(stamp, stamp)
    assert matcher.add_first(5, 5) is None
    assert matcher.add_second(5, "boxes") == (5, "boxes")


@settings(max_examples=60, deadline=None)
@given(st.permutations([(kind, stamp) for stamp in range(0, 60, 10) for kind in ("first", "second")]))
def test_every_order_of_arrival_gives_the_same_pairs(arrivals):
    matcher = StampMatcher(2, depth=20)
    pairs = []
    for kind, stamp in arrivals:
        pair = matcher.add_first(stamp, stamp) if kind == "first" else matcher.add_second(stamp + 1, stamp)
        if pair:
            pairs.append(pair)
    assert sorted(pairs) == [(stamp, stamp) for stamp in range(0, 60, 10)]


def test_of_two_equally_near_messages_the_latest_arrival_is_taken():
    matcher = StampMatcher(0, depth=4)
    matcher.add_first(10, "image of the first run")
    matcher.add_first(10, "image of the second run")
    assert matcher.add_second(10, "boxes") == ("image of the second run", "boxes")


def test_a_stream_that_steps_back_forgets_what_waits_from_the_time_ahead():
    matcher = StampMatcher(0, depth=4)
    matcher.add_first(100 * STEP_BACK, "old image")
    matcher.add_second(101 * STEP_BACK, "old boxes")
    for stamp in (5, 6):
        assert matcher.add_first(stamp, f"image {stamp}") is None
        assert matcher.add_second(stamp, "boxes") == (f"image {stamp}", "boxes")
    assert (matcher.unpaired_first, matcher.unpaired_second, matcher.waiting) == (1, 1, (0, 0))
    assert matcher.add_second(100 * STEP_BACK, "boxes of the new time") is None


def test_a_single_unset_stamp_costs_no_good_message_its_partner():
    matcher = StampMatcher(0, depth=4)
    for stamp in (100 * STEP_BACK, 0, 101 * STEP_BACK):
        assert matcher.add_first(stamp, stamp) is None
    for stamp in (100 * STEP_BACK, 0, 101 * STEP_BACK):
        assert matcher.add_second(stamp, "boxes") == (stamp, "boxes")


def test_boxes_that_lag_far_behind_the_images_are_paired():
    matcher = StampMatcher(0, depth=100)
    for stamp in range(0, 50 * STEP_BACK, STEP_BACK):
        matcher.add_first(stamp, stamp)
    assert [matcher.add_second(stamp, "boxes") for stamp in (0, STEP_BACK)] == [
        (0, "boxes"),
        (STEP_BACK, "boxes"),
    ]
