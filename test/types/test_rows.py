"""Rows of states that many tracks share."""

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.types.views import add, grown, put_rows, rows_of, state_bytes, take_rows


@dataclass(frozen=True)
class State:
    count: np.ndarray
    pmf: np.ndarray


def state(tracks: int) -> State:
    return State(np.arange(tracks, dtype=float), np.arange(2.0 * tracks).reshape(tracks, 2))


def test_rows_are_taken_put_back_and_added_field_by_field():
    whole = state(5)
    part = take_rows(whole, np.array([3, 1]))
    np.testing.assert_array_equal(part.pmf, [[6, 7], [2, 3]])
    put_rows(whole, np.array([3, 1]), add(part, part))
    np.testing.assert_array_equal(whole.count, [0, 2, 2, 6, 4])
    np.testing.assert_array_equal(whole.pmf[[1, 3]], [[4, 6], [12, 14]])


def test_a_state_grows_by_empty_rows_and_knows_its_size():
    larger = grown(state(3), state(2))
    assert rows_of(larger) == 5 and state_bytes(larger) == 5 * 3 * 8
    np.testing.assert_array_equal(larger.count, [0, 1, 2, 0, 1])
