"""The built-in tracker: ids that hold through misses, jitter and false boxes, and whatever the clock does."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from lla_fusion_ros.tracking import Tracker, TrackerSettings
from lla_fusion_ros.types.errors import InputError
from support.drive import SWITCH_TIME, short_drive

SECOND = 10**9
START = 1_700_000_000 * SECOND
STILL = np.array([[100.0, 100.0, 20.0, 20.0], [300.0, 120.0, 40.0, 40.0]])


def run(frames, tracker=None):
    """Ids of (seconds, boxes) or (seconds, boxes, scores)."""
    tracker = tracker or Tracker()
    return [tracker.update(START + round(at * SECOND), *rest) for at, *rest in frames]


def idf1(pairs):
    """Of (true id, given id) of every box, "" for none."""
    true, given = (sorted({pair[side] for pair in pairs if pair[side]}) for side in (0, 1))
    shared = np.array([[sum(pair == (a, b) for pair in pairs) for b in given] for a in true])
    right = shared[linear_sum_assignment(-shared)].sum()
    return 2 * right / (sum(bool(a) for a, _ in pairs) + sum(bool(b) for _, b in pairs))


def test_a_drive_with_missed_false_and_jittered_boxes_keeps_its_ids():
    rng = np.random.default_rng(1)
    trackers = {"left": Tracker(), "right": Tracker()}
    pairs = []
    first = short_drive()[0].stamp
    for frame in short_drive():
        if frame.stamp - first > (SWITCH_TIME - 0.05) * SECOND:
            break  # from here on the drive's own ids are wrong
        kept = np.flatnonzero(rng.random(len(frame.ids)) > 0.1)
        boxes = frame.boxes[kept] * np.exp(rng.normal(0, [0.002, 0.002, 0.05, 0.05], (len(kept), 4)))
        false = np.array([[*rng.uniform(0, 480, 2), 25, 25]])[: int(rng.random() < 0.05 * len(kept))]
        ids = trackers[frame.camera].update(frame.stamp, np.concatenate([boxes, false.reshape(-1, 4)]))
        truth = [f"{frame.camera}/{frame.ids[row]}" for row in kept] + [""] * len(false)
        pairs += [(a, f"{frame.camera}/{b}") for a, b in zip(truth, ids, strict=True)]
    assert len(pairs) > 150
    assert idf1(pairs) >= 0.95


def test_ids_count_up_and_hold():
    assert run([(0.1 * step, STILL) for step in range(5)]) == [("1", "2")] * 5


def test_ids_follow_the_boxes_and_not_their_order():
    assert run([(0, STILL), (0.1, STILL[::-1])])[1] == ("2", "1")


def test_small_boxes_that_move_by_more_than_their_size_keep_their_ids():
    """The vehicle turns: everything moves by 30 pixels a frame, the boxes have 20."""
    row = np.array([[50.0 + 60 * n, 100.0, 20.0, 20.0] for n in range(5)])
    ids = run([(0.1 * step, row + [30.0 * step, 0, 0, 0]) for step in range(10)])
    assert ids == [("1", "2", "3", "4", "5")] * 10


def test_speed_counts_in_seconds_and_not_in_frames():
    box = lambda at: np.array([[100 + 200 * at, 100, 30, 30]])  # noqa: E731
    times = [0, 0.05, 0.1, 0.15, 0.5, 0.55, 1.2]
    assert run([(at, box(at)) for at in times]) == [("1",)] * len(times)


def test_a_track_ends_after_its_time_and_its_id_is_not_used_again():
    nothing = np.empty((0, 4))
    seen = [(0.1 * step, STILL) for step in range(5)]
    ids = run([*seen, (0.8, nothing), (0.9, STILL), (2.5, nothing), (2.6, STILL)])
    assert ids[6] == ("1", "2") and ids[8] == ("3", "4")


def test_a_late_frame_gets_the_ids_it_fits_and_changes_nothing():
    tracker = Tracker()
    moving = lambda at: STILL + [100 * at, 0, 0, 0]  # noqa: E731
    run([(0.1 * step, moving(0.1 * step)) for step in range(6)], tracker)
    far = np.array([[500.0, 400.0, 20.0, 20.0]])
    late = run([(0.25, np.concatenate([moving(0.25), far])), (0.5, moving(0.5))], tracker)
    assert late == [("1", "2", ""), ("1", "2")]
    assert tracker.tracks == 2
    assert run([(0.6, moving(0.6))], tracker) == [("1", "2")]


def test_a_clock_that_jumps_back_begins_new_tracks_with_new_ids():
    tracker = Tracker()
    assert run([(10, STILL), (5, STILL), (5.1, STILL)], tracker) == [("1", "2"), ("3", "4"), ("3", "4")]


def test_a_single_stamp_from_the_future_costs_the_tracks_and_no_more():
    ids = run([(0, STILL), (1000, STILL), (0.1, STILL), (0.2, STILL)])
    assert ids[2] == ids[3]
    assert len({*ids[0], *ids[1], *ids[2]}) == 6


def test_an_unsure_box_continues_a_track_and_begins_none():
    ids = run([(0, STILL, [0.9, 0.2]), (0.1, STILL, [0.2, 0.2]), (0.2, STILL, [0.9, 0.9])])
    assert ids == [("1", ""), ("1", ""), ("1", "2")]
    every = run([(0, STILL, [0.0, 0.2])], Tracker(TrackerSettings(sure=0.0)))
    assert every == [("1", "2")]


def test_a_sure_neighbour_does_not_take_the_track_of_an_unsure_box():
    behind = STILL[:1] + [6, 0, -1, -1]
    ids = run([*[(0.1 * n, STILL[:1], [0.9]) for n in range(5)], (0.5, [*STILL[:1], *behind], [0.3, 0.9])])
    assert ids[-1] == ("1", "2")


def test_tracks_can_wait_for_a_second_box_before_they_get_an_id():
    ids = run([(0.1 * step, STILL) for step in range(3)], Tracker(TrackerSettings(confirm=2)))
    assert ids == [("", ""), ("1", "2"), ("1", "2")]


def test_a_box_far_from_its_track_is_another_object():
    assert run([(0, STILL[:1]), (0.1, STILL[:1] + [200, 0, 0, 0])])[1] == ("2",)
    assert run([(0, STILL[:1]), (0.1, STILL[:1] * [1, 1, 3, 3])])[1] == ("2",)


def test_bad_boxes_get_no_id_and_do_no_harm():
    bad = np.array([[np.nan, 1, 1, 1], [1, np.inf, 1, 1], [1, 1, 0, 1], [1, 1, 1, -1]])
    ids = run([(0, STILL), (0.1, np.concatenate([bad, STILL]))])
    assert ids[1] == ("", "", "", "", "1", "2")


def test_ten_thousand_boxes_are_cut_to_what_can_be_tracked():
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.uniform(0, 4000, (10_000, 2)), rng.uniform(5, 50, (10_000, 2))], axis=1)
    tracker = Tracker()
    for step in range(3):
        ids = tracker.update(START + step * SECOND // 10, boxes)
        assert len(ids) == 10_000 and sum(map(bool, ids)) == 200
        assert tracker.tracks <= 200
        boxes = boxes[::-1]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-(2**62), 2**62),
            st.lists(st.tuples(*[st.floats(width=64)] * 4), max_size=4),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_whatever_comes_ids_are_unique_in_a_frame_and_memory_is_bounded(frames):
    tracker = Tracker(TrackerSettings(capacity=3))
    with np.errstate(over="ignore", invalid="ignore"):
        for stamp, boxes, scored in frames:
            scores = np.full(len(boxes), 0.7) if scored else None
            ids = tracker.update(stamp, np.array(boxes).reshape(-1, 4), scores)
            named = [name for name in ids if name]
            assert len(ids) == len(boxes) and len(set(named)) == len(named)
            assert tracker.tracks <= 3


def test_twenty_boxes_take_well_under_a_millisecond():
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.uniform(0, 1000, (20, 2)), rng.uniform(20, 50, (20, 2))], axis=1)
    tracker = Tracker()
    times = []
    for step in range(100):
        start = time.process_time()
        tracker.update(START + step * SECOND // 10, boxes + rng.normal(0, 1, boxes.shape))
        times.append(time.process_time() - start)
    assert np.median(times) < 1e-3


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="'agility' is 0"):
        TrackerSettings(agility=0.0)
