"""`wls` against the paper's dense formula, streaming against batch, and where the printed rule ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.wls import Wls, WlsState
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import Views, take_rows
from support.tiny_posterior import make_posterior, make_views


def dense_fusion(
    posterior: EnsemblePosterior, views: list[Views], track: int
) -> tuple[np.ndarray, np.ndarray]:
    """(H^T R^-1 H)^-1 and its product with H^T R^-1 zeta, with all matrices written out."""
    features = np.stack([v.features[track] for v in views])
    logits = np.stack([v.logits[track] for v in views])  # [views, networks, classes]
    rows, classes = features.shape[0] * posterior.networks, posterior.classes
    blocks = posterior.joint_covariance(features)  # [classes, rows, rows], networks first
    zeta = (logits - logits.max(axis=-1, keepdims=True)).transpose(1, 0, 2).reshape(-1)  # rows, then classes
    r = np.zeros((rows * classes, rows * classes))
    for m in range(classes):
        r[m::classes, m::classes] = blocks[m]
    h = np.tile(np.eye(classes), (rows, 1))
    r_inverse = np.linalg.inv(r)
    covariance = np.linalg.inv(h.T @ r_inverse @ h)
    return covariance @ h.T @ r_inverse @ zeta, covariance


def fused(posterior: EnsemblePosterior, views: list[Views], window: int) -> tuple[Wls, WlsState]:
    fuser = Wls(posterior, window=window)
    state = fuser.initial(len(views[0]))
    for view in views:
        state = fuser.update(state, view)
    return fuser, state


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 4),
    networks=st.integers(1, 4),
    classes=st.integers(2, 5),
    cross=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_it_equals_the_dense_formula_of_the_paper(length, networks, classes, cross, seed) -> None:
    posterior = make_posterior(networks, classes, features=7, cross=cross, seed=seed)
    views = [make_views(posterior, 2, seed + 1 + step) for step in range(length)]
    fuser, state = fused(posterior, views, window=length)
    mean, variance = fuser.gaussian(state)
    for track in range(2):
        expected, covariance = dense_fusion(posterior, views, track)
        np.testing.assert_allclose(mean[track], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(variance[track], np.diag(covariance), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cross", [False, True])
def test_a_hundred_appends_equal_the_batch(cross) -> None:
    features = 120  # more than views, so that R has full rank to the end
    posterior = make_posterior(2, 3, features, cross=cross)
    views = [make_views(posterior, 1, seed) for seed in range(100)]
    fuser, state = fused(posterior, views, window=100)
    mean, variance = fuser.gaussian(state)
    stacked = np.stack([v.features[0] for v in views])
    logits = np.stack([v.logits[0] for v in views])
    zeta = (logits - logits.max(axis=-1, keepdims=True)).transpose(1, 0, 2).reshape(200, 3)
    for m, covariance in enumerate(posterior.joint_covariance(stacked)):
        solved = np.linalg.solve(covariance, np.column_stack([np.ones(200), zeta[:, m]]))
        expected = 1.0 / solved[:, 0].sum()
        assert variance[0, m] == pytest.approx(expected, rel=1e-9)
        assert mean[0, m] == pytest.approx(expected * solved[:, 1].sum(), rel=1e-9)


@pytest.mark.parametrize("cross", [False, True])
def test_a_full_window_equals_a_fresh_start_with_the_views_it_keeps(cross) -> None:
    posterior = make_posterior(3, 4, features=20, cross=cross)
    views = [make_views(posterior, 2, seed) for seed in range(12)]
    fuser, long = fused(posterior, views, window=5)
    _, short = fused(posterior, views[-5:], window=5)
    for a, b in zip(fuser.gaussian(long), fuser.gaussian(short), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_tracks_of_different_age_update_in_one_call() -> None:
    posterior = make_posterior(2, 3, features=12)
    fuser = Wls(posterior, window=3)
    old = fuser.initial(1)
    for seed in range(4):  # one track has already lost a view from its window
        old = fuser.update(old, make_views(posterior, 1, seed))
    mixed = fuser.initial(2)
    for name in ("count", "features", "zeta", "live", "factor", "ones", "values"):
        getattr(mixed, name)[0] = getattr(old, name)[0]
    views = make_views(posterior, 2, 99)
    together = fuser.update(mixed, views)
    for track, alone in enumerate((old, fuser.initial(1))):
        single = fuser.update(alone, views.take(slice(track, track + 1)))
        np.testing.assert_allclose(
            fuser.gaussian(take_rows(together, np.array([track])))[0], fuser.gaussian(single)[0], rtol=1e-12
        )


def test_the_same_view_again_makes_r_singular_and_changes_nothing() -> None:
    posterior = make_posterior()
    view = make_views(posterior, 2)
    fuser, once = fused(posterior, [view], window=4)
    _, twice = fused(posterior, [view, view], window=4)
    np.testing.assert_allclose(fuser.predict(twice), fuser.predict(once), rtol=1e-12)


def test_strict_refuses_a_singular_r_and_leaves_the_state() -> None:
    posterior = make_posterior()
    fuser = make_fuser("wls", posterior, {"strict": 1})
    view = make_views(posterior, 1)
    state = fuser.update(fuser.initial(1), view)
    before = state.factor.copy()
    with pytest.raises(InputError, match="R is singular: row 1 of track 0"):
        fuser.update(state, view)
    np.testing.assert_array_equal(state.factor, before)


def test_more_views_than_features_stay_finite() -> None:
    posterior = make_posterior(1, 3, features=4)
    fuser, state = fused(posterior, [make_views(posterior, 1, seed) for seed in range(12)], window=12)
    pmf = fuser.predict(state)
    assert np.isfinite(pmf).all()
    assert pmf.sum() == pytest.approx(1.0)


def test_it_says_that_it_is_not_for_use_over_time() -> None:
    (note,) = make_fuser("wls", make_posterior()).notes
    assert "wls_robust" in note


def test_without_laplace_temperature_the_pmf_is_that_of_the_fused_logits() -> None:
    posterior = make_posterior(temperature=0.0)
    fuser, state = fused(posterior, [make_views(posterior, 1, seed) for seed in range(2)], window=4)
    mean, variance = fuser.gaussian(state)
    assert (variance == 0).all()
    np.testing.assert_allclose(fuser.predict(state), np.exp(mean) / np.exp(mean).sum(), rtol=1e-9)
