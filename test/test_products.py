"""Sums as products are the sums, whatever the shape."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.products import last_axis_mean, last_axis_sum, row_norms, square_sum, weighted_sum


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (0, 3), (4, 3), (1, 2, 3), (5, 2, 3)])
def test_the_last_axis_is_summed_in_its_own_precision(shape, kind) -> None:
    array = np.random.default_rng(0).normal(size=shape).astype(kind)
    tolerance = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(last_axis_sum(array), array.sum(axis=-1), **tolerance)
    np.testing.assert_allclose(last_axis_mean(array), array.mean(axis=-1), **tolerance)
    np.testing.assert_allclose(row_norms(array), (array**2).sum(axis=-1), **tolerance)
    assert last_axis_sum(array).dtype == row_norms(array).dtype == kind


@pytest.mark.parametrize("tracks", [0, 1, 4])
def test_a_weighted_sum_is_that_of_each_track(tracks) -> None:
    rng = np.random.default_rng(0)
    weights, arrays = rng.random((tracks, 5)), rng.random((tracks, 5, 3))
    np.testing.assert_allclose(weighted_sum(weights, arrays), (weights[..., None] * arrays).sum(axis=1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_shows_in_the_sum_of_squares_without_a_warning(bad) -> None:
    assert not np.isfinite(square_sum(np.array([1.0, bad, 2.0])))
    assert square_sum(np.array([[3.0, 4.0]])) == 25.0


@pytest.mark.parametrize("largest", [0.5, 1.9, 3.0, 1e300])
def test_bounded_values_are_clipped_values(largest) -> None:
    values = np.array([[0.1, -largest], [largest, 0.0]])
    np.testing.assert_array_equal(bounded(values, 2.0), np.clip(values, -2.0, 2.0))
