"""The rules of the track store, one by one."""

from __future__ import annotations

import numpy as np
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


def test_an_id_keeps_its_row_and_is_fresh_only_once() -> None:
    store = make_store()
    first = store.admit("front", at(0), ["a", "b"])
    second = store.admit("front", at(0.1), ["b", "a"])
    assert first.fresh.all() and not second.fresh.any()
    assert second.rows.tolist() == first.rows[::-1].tolist()


def test_an_id_is_one_track_in_all_cameras() -> None:
    store = make_store()
    store.admit("front", at(0), ["7"])
    store.admit("left", at(0), ["7"])
    assert len(store) == 1


def test_ids_are_kept_byte_for_byte() -> None:
    store = make_store()
    names = ["7", "07", " 7", "7 ", "Å", "A\u030a", "№ 7", "x" * 256]
    admission = store.admit("front", at(0), names)
    assert store.ids(admission.rows) == names


def test_empty_and_overlong_ids_are_dropped_and_counted() -> None:
    admission = make_store().admit("front", at(0), ["", "a", "x" * 257, ""])
    assert admission.kept.tolist() == [1]
    assert admission.dropped == {"empty_id": 2, "long_id": 1}


def test_a_track_without_views_for_too_long_is_forgotten() -> None:
    store = make_store(idle_timeout=1.0)
    store.admit("front", at(0), ["a", "b"])
    store.admit("front", at(0.8), ["b"])
    admission = store.admit("front", at(1.5), ["b"])
    assert [key for key, _ in admission.removed] == ["a"]
    assert store.admit("front", at(1.6), ["a"]).fresh.all()


def test_an_id_that_comes_back_after_the_timeout_is_a_new_track() -> None:
    store = make_store(idle_timeout=1.0)
    store.admit("front", at(0), ["a"])
    admission = store.admit("front", at(2), ["a"])
    assert admission.fresh.all()
    assert [key for key, _ in admission.removed] == ["a"]


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


def test_the_track_not_seen_for_longest_makes_room() -> None:
    store = make_store(capacity=2)
    store.admit("front", at(0.0), ["a"])
    store.admit("front", at(0.1), ["b"])
    store.admit("front", at(0.2), ["a"])
    admission = store.admit("front", at(0.3), ["c"])
    assert [key for key, _ in admission.removed] == ["b"]
    assert len(store) == 2


def test_a_frame_with_more_ids_than_capacity_keeps_the_first() -> None:
    store = make_store(capacity=3)
    admission = store.admit("front", at(0), [str(i) for i in range(5)])
    assert admission.kept.tolist() == [0, 1, 2]
    assert admission.dropped == {"capacity": 2}


def test_tracks_of_this_frame_are_never_evicted_by_it() -> None:
    store = make_store(capacity=3)
    store.admit("front", at(0), ["a", "b", "c"])
    admission = store.admit("front", at(1), ["a", "d", "e"])
    assert {key for key, _ in admission.removed} == {"b", "c"}
    assert not admission.fresh[0] and admission.fresh[1:].all()


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


def test_the_same_view_twice_is_a_duplicate() -> None:
    store = make_store()
    store.admit("front", at(0), ["a"])
    again = store.admit("front", at(0), ["a", "b"])
    assert again.kept.tolist() == [1]
    assert again.dropped == {"duplicate": 1}


def test_another_camera_at_the_same_stamp_is_no_duplicate() -> None:
    store = make_store()
    store.admit("front", at(0), ["a"])
    admission = store.admit("left", at(0), ["a"])
    assert admission.dropped == {}
    assert store.views(admission.rows).tolist() == [[1, 1]]


def test_an_id_twice_in_one_frame_counts_once() -> None:
    admission = make_store().admit("front", at(0), ["a", "a", "b"])
    assert admission.kept.tolist() == [0, 2]
    assert admission.dropped == {"duplicate": 1}


def test_a_slightly_late_frame_is_fused_and_a_very_late_one_is_not() -> None:
    store = make_store(max_lateness=0.5)
    store.admit("front", at(1.0), ["a"])
    assert store.admit("front", at(0.6), ["a"]).kept.tolist() == [0]
    late = store.admit("front", at(0.4), ["a", "b"])
    assert late.kept.tolist() == []
    assert late.dropped == {"late": 2}


def test_a_late_duplicate_is_recognised() -> None:
    store = make_store()
    for step in range(4):
        store.admit("front", at(0.1 * step), ["a"])
    assert store.admit("front", at(0.1), ["a"]).dropped == {"duplicate": 1}


def test_a_view_older_than_what_the_track_remembers_is_late() -> None:
    store = make_store()
    for step in range(REMEMBERED + 1):
        store.admit("front", at(0.3 + 0.001 * step), ["a"])
    assert store.admit("front", at(0.2), ["a"]).dropped == {"late": 1}


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
