"""The rules of the track store, one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.engine.tracks import FIRST_ROWS, REMEMBERED, TrackStore
from lla_fusion_ros.types.settings import FusionSettings

SECOND = 1_000_000_000
START = 1_000 * SECOND


def make_store(**changes) -> TrackStore:
    return TrackStore(FusionSettings(**changes))


def at(seconds: float) -> int:
    return START + round(seconds * SECOND)


# Settings; frames before (camera, seconds, ids); then one more, and of it: which detections are kept, what is
# dropped, which tracks went, how many views of each camera the kept ones have.
STORIES = {
    "an id is one track in all cameras, and no duplicate at the same stamp": (
        {}, [("front", 0, "a")], ("left", 0, "a"), [0], {}, "", [[1, 1]],
    ),
    "empty and overlong ids": (
        {}, [], ("front", 0, ["", "a", "x" * 257, ""]), [1], {"empty_id": 2, "long_id": 1}, "", [[1]],
    ),
    "a track without views for too long is forgotten": (
        {"idle_timeout": 1.0}, [("front", 0, "ab"), ("front", 0.8, "b")], ("front", 1.5, "b"),
        [0], {}, "a", [[3]],
    ),
    "an id that comes back after the timeout is a new track": (
        {"idle_timeout": 1.0}, [("front", 0, "a")], ("front", 2, "a"), [0], {}, "a", [[1]],
    ),
    "the track not seen for longest makes room": (
        {"capacity": 2}, [("front", 0, "a"), ("front", 0.1, "b"), ("front", 0.2, "a")], ("front", 0.3, "c"),
        [0], {}, "b", [[1]],
    ),
    "a frame with more ids than capacity keeps the first": (
        {"capacity": 3}, [], ("front", 0, "abcde"), [0, 1, 2], {"capacity": 2}, "", [[1]] * 3,
    ),
    "tracks of this frame are never evicted by it": (
        {"capacity": 3}, [("front", 0, "abc")], ("front", 1, "ade"), [0, 1, 2], {}, "bc", [[2], [1], [1]],
    ),
    "the same view twice is a duplicate": (
        {}, [("front", 0, "a")], ("front", 0, "ab"), [1], {"duplicate": 1}, "", [[1]],
    ),
    "an id twice in one frame counts once": (
        {}, [], ("front", 0, "aab"), [0, 2], {"duplicate": 1}, "", [[1], [1]],
    ),
    "a late duplicate is recognised": (
        {}, [("front", i / 10, "a") for i in range(4)], ("front", 0.1, "a"), [], {"duplicate": 1}, "", [],
    ),
    "a copy is a duplicate however late it comes, and what is new in it is late": (
        {"max_lateness": 0.5}, [("front", 0, "ab"), ("left", 1, "a")], ("front", 0, ["a", "b", "", "c"]),
        [], {"empty_id": 1, "duplicate": 2, "late": 1}, "", [],
    ),
    "a copy is a duplicate also where its track is forgotten": (
        {"idle_timeout": 0.2}, [("front", 0, "a"), ("left", 0.4, "b")], ("front", 0, "a"),
        [], {"duplicate": 1}, "", [],
    ),
    "a stamp of the time before a jump is none of the time after it": (
        {}, [("front", 0, "a"), ("front", 9, "a"), ("front", 0, "b")], ("front", 0, "ab"),
        [0], {"duplicate": 1}, "", [[1]],
    ),
    "a slightly late frame is fused": (
        {"max_lateness": 0.5}, [("front", 1.0, "a")], ("front", 0.6, "a"), [0], {}, "", [[2]],
    ),
    "a very late one is not": (
        {"max_lateness": 0.5}, [("front", 1.0, "a")], ("front", 0.4, "ab"), [], {"late": 2}, "", [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_a_frame_is_admitted_by_the_rules(story) -> None:
    changes, before, (camera, seconds, ids), kept, dropped, removed, views = story
    store = make_store(**changes)
    for name, moment, seen in before:
        store.admit(name, at(moment), list(seen))
    admission = store.admit(camera, at(seconds), list(ids))
    assert (admission.kept.tolist(), admission.dropped) == (kept, dropped)
    assert sorted(key for key, _ in admission.removed) == sorted(removed)
    assert store.views(admission.rows).tolist() == views
    assert len(store) <= changes.get("capacity", 1000)


def test_an_id_keeps_its_row_and_is_fresh_only_once() -> None:
    store = make_store()
    first = store.admit("front", at(0), ["a", "b"])
    second = store.admit("front", at(0.1), ["b", "a"])
    assert first.fresh.all() and not second.fresh.any()
    assert second.rows.tolist() == first.rows[::-1].tolist()


def test_ids_are_kept_byte_for_byte() -> None:
    store = make_store()
    names = ["7", "07", " 7", "7 ", "Å", "A\u030a", "№ 7", "x" * 256]
    admission = store.admit("front", at(0), names)
    assert store.ids(admission.rows) == names


def test_a_track_beyond_its_age_starts_again() -> None:
    store = make_store(max_age=2.0, idle_timeout=10.0)
    for step in range(5):
        admission = store.admit("front", at(0.5 * step), ["a"])
        assert admission.fresh[0] == (step == 0)
    admission = store.admit("front", at(2.5), ["a"])
    assert admission.fresh.all()
    assert store.views(admission.rows).tolist() == [[1]]


def test_age_zero_means_no_limit() -> None:
    store = make_store(max_age=0.0, idle_timeout=3600.0)
    store.admit("front", at(0), ["a"])
    assert not store.admit("front", at(3000), ["a"]).fresh.any()


def test_ten_thousand_ids_stay_within_capacity_and_memory() -> None:
    store = make_store(capacity=100)
    for step in range(500):
        store.admit("front", at(0.01 * step), [f"{step}-{i}" for i in range(20)])
    assert len(store) == 100
    assert store.allocated <= 2 * 100


def test_rows_double_when_needed() -> None:
    store = make_store(capacity=10_000)
    store.admit("front", at(0), [str(i) for i in range(FIRST_ROWS)])
    first = store.admit("front", at(0.1), ["0"]).rows
    store.admit("front", at(0.2), ["one more"])
    assert store.allocated == 2 * FIRST_ROWS
    assert store.admit("front", at(0.3), ["0"]).rows.tolist() == first.tolist()


def test_a_frame_older_than_what_is_remembered_of_its_camera_is_late() -> None:
    store = make_store()
    for step in range(REMEMBERED + 1):
        store.admit("front", at(0.3 + 0.001 * step), ["a"])
    assert store.admit("front", at(0.3), ["a"]).dropped == {"late": 1}
    assert store.admit("front", at(0.301), ["a"]).dropped == {"duplicate": 1}
    assert store.admit("left", at(0.3), ["a"]).dropped == {}


@settings(max_examples=50, deadline=None)
@given(delays=st.lists(st.integers(0, 19), min_size=1, max_size=40))
def test_every_copy_is_counted_as_one_whatever_comes_before_it(delays) -> None:
    frames = [(("front", "left")[number % 2], at(0.1 * number), ["a", str(number)]) for number in range(40)]
    coming = [(number, 0, frames[number]) for number in range(40)]
    coming += [(number + delay, 1, frames[number]) for number, delay in enumerate(delays)]
    store = make_store(idle_timeout=0.5, max_lateness=0.5, clock_jump=2.0)
    dropped = Counter()
    for _, _, frame in sorted(coming, key=lambda each: each[:2]):
        dropped.update(store.admit(*frame).dropped)
    assert dropped == {"duplicate": 2 * len(delays)}


def test_a_backward_clock_jump_clears_everything_once() -> None:
    store = make_store()
    store.admit("front", at(100), ["a", "b"])
    jump = store.admit("front", at(0), ["a"])
    assert jump.jumped and jump.fresh.all()
    assert {key for key, _ in jump.removed} == {"a", "b"}
    after = store.admit("front", at(0.1), ["a"])
    assert not after.jumped and not after.fresh.any()


def test_a_frame_without_stamp_is_dropped() -> None:
    store = make_store()
    assert store.admit("front", 0, ["a"]).dropped == {"no_stamp": 1}
    assert len(store) == 0


def test_an_identity_switch_restarts_age_and_counts() -> None:
    store = make_store()
    rows = store.admit("front", at(0), ["a"]).rows
    store.admit("left", at(0.1), ["a"])
    store.restart(rows, "left")
    assert store.views(rows).tolist() == [[0, 1]]
    assert not store.admit("front", at(0.2), ["a"]).fresh.any()


def test_new_limits_hold_from_the_next_frame() -> None:
    store = make_store(idle_timeout=10.0)
    store.admit("front", at(0), ["a"])
    store.configure(FusionSettings(idle_timeout=1.0))
    assert [key for key, _ in store.admit("front", at(2), ["b"]).removed] == ["a"]


frames = st.lists(
    st.tuples(
        st.sampled_from(["front", "left"]),
        st.floats(0.0, 8.0),
        st.lists(st.sampled_from(["a", "b", "c", "d", "e", ""]), max_size=5),
    ),
    max_size=30,
)


@settings(max_examples=50, deadline=None)
@given(frames=frames)
def test_whatever_comes_every_detection_is_fused_or_counted_and_rows_are_distinct(frames) -> None:
    store = make_store(capacity=3, idle_timeout=1.0)
    for camera, seconds, ids in frames:
        admission = store.admit(camera, at(seconds), ids)
        assert len(admission.kept) + sum(admission.dropped.values()) == len(ids)
        assert len(set(admission.rows.tolist())) == len(admission.rows)
        assert store.ids(admission.rows) == [ids[i] for i in admission.kept]
        assert len(store) <= 3
        assert (store.views(admission.rows).sum(axis=1) >= 1).all()
        assert np.all(admission.rows < store.allocated)
