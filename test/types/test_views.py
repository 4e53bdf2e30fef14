"""Views, and rows of states that many tracks share."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import (
    Views,
    add,
    box_sides,
    grown,
    put_rows,
    rows_of,
    state_bytes,
    take_rows,
    widened,
)


def views(tracks=4, networks=2, classes=3, features=5):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(tracks, networks, classes))
    return Views(logits, rng.normal(size=(tracks, networks, features)))


def test_taking_rows_takes_them_everywhere():
    some = views()
    part = some.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.logits, some.logits[[2, 0]])
    np.testing.assert_array_equal(part.features, some.features[[2, 0]])


def test_the_side_of_a_box_is_the_root_of_its_area_and_unknown_of_a_whole_crop():
    assert box_sides(np.array([[50, 40, 0, 8, 18], [4, 9, 0, 8, 18], [5, 5, 0, 0, 4]])) == pytest.approx(
        [12, np.nan, np.nan], nan_ok=True
    )
    assert len(box_sides(np.zeros((0, 5)))) == 0


def test_taking_rows_keeps_sizes_and_they_must_fit():
    some = replace(views(), size=np.arange(4.0))
    np.testing.assert_array_equal(some.take(np.array([2, 0])).size, [2, 0])
    with pytest.raises(InputError, match="views.size"):
        replace(some, size=np.zeros(3)).check(2, 3, 5)


@pytest.mark.parametrize("tracks", [0, 4])
def test_views_know_their_axes_also_of_no_tracks(tracks):
    some = views(tracks)
    assert (len(some), some.networks, some.classes) == (tracks, 2, 3)
    some.check(2, 3, 5)


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


@dataclass(frozen=True)
class Claims:
    count: np.ndarray
    total: np.ndarray


def test_a_further_class_stands_before_the_reserved_ones_and_is_least_likely():
    before = Claims(np.array([3, 0]), np.array([[2.0, 1.0], [-4.0, -2.0]]))
    after = widened(before, Claims(np.zeros(2), np.zeros((2, 3))), 1)
    np.testing.assert_array_equal(after.count, [3, 0])
    np.testing.assert_array_equal(after.total, [[2, 0, 1], [-4, -8, -2]])
