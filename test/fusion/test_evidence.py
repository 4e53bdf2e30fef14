"""How evidence adds up: gauge, order, repeated views, and cost that does not grow with the track."""

from __future__ import annotations

import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.fusion.wls import Wls
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.views import Views, state_bytes
from support.tiny_posterior import make_posterior, make_views

GAUGE_SAFE = sorted(set(fusers()) - {"wls"})
ORDER_FREE = sorted(set(fusers()) - {"wls", "last", "ema"})


def pmf_of(fuser: Fuser, views: list[Views]) -> np.ndarray:
    state = fuser.initial(len(views[0]))
    for view in views:
        state = fuser.update(state, view)
    return fuser.predict(state)


def shifted(view: Views, constants: np.ndarray) -> Views:
    """The same view with a constant added to the logits of each track and network."""
    return Views(view.logits + constants[..., None], view.features)


@pytest.mark.parametrize("name", GAUGE_SAFE)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(-1e3, 1e3))
def test_a_constant_added_to_the_logits_of_a_view_changes_nothing(name, seed, size) -> None:
    posterior = make_posterior(seed=seed)
    fuser = make_fuser(name, posterior)
    views = [make_views(posterior, 3, seed + step) for step in range(4)]
    rng = np.random.default_rng(seed)
    moved = [shifted(view, size * rng.normal(size=view.logits.shape[:2])) for view in views]
    np.testing.assert_allclose(pmf_of(fuser, moved), pmf_of(fuser, views), atol=1e-8)


def test_wls_as_printed_depends_on_the_shift_it_happens_to_use() -> None:
    """Each class has its own weights, so a constant per view moves the classes differently.

    The printed rule hides this behind the max shift (eq. 11); the mean-centred logits are the
    same views to softmax, and give another pmf.
    """
    posterior = make_posterior()
    fuser = Wls(posterior)
    views = [make_views(posterior, 1, seed) for seed in range(4)]
    state = fuser.initial(1)
    for view in views:
        state = fuser.update(state, view)
    logits = np.stack([v.logits[0] for v in views])  # [views, networks, classes]

    def weighted(zeta: np.ndarray) -> np.ndarray:
        rows = zeta.transpose(1, 0, 2).reshape(-1, posterior.classes)
        inverse = np.linalg.inv(posterior.joint_covariance(np.stack([v.features[0] for v in views])))
        weights = inverse.sum(axis=1) / inverse.sum(axis=(1, 2))[:, None]  # [classes, rows]
        return np.einsum("mr,rm->m", weights, rows)

    printed = weighted(logits - logits.max(axis=-1, keepdims=True))
    centred = weighted(logits - logits.mean(axis=-1, keepdims=True))
    np.testing.assert_allclose(fuser.gaussian(state)[0][0], printed, rtol=1e-9)
    assert np.abs(softmax(printed) - softmax(centred)).max() > 0.01


@pytest.mark.parametrize("name", ORDER_FREE)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), order=st.permutations(range(5)))
def test_the_order_of_views_does_not_matter(name, seed, order) -> None:
    posterior = make_posterior(seed=seed)
    fuser = make_fuser(name, posterior)
    views = [make_views(posterior, 2, seed + step) for step in range(5)]
    np.testing.assert_allclose(
        pmf_of(fuser, [views[i] for i in order]), pmf_of(fuser, views), rtol=1e-9, atol=1e-12
    )


def test_the_order_of_views_matters_where_it_should() -> None:
    posterior = make_posterior()
    views = [make_views(posterior, 1, step) for step in range(3)]
    for name in ("last", "ema"):
        fuser = make_fuser(name, posterior)
        assert np.abs(pmf_of(fuser, views) - pmf_of(fuser, views[::-1])).max() > 0.01


@pytest.mark.parametrize("name", ["pool", "wls_robust", "ella_mixture", "hybrid"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
def test_the_same_view_twice_counts_two_to_the_alpha_times(name, alpha) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior, {"alpha": alpha})
    view = make_views(posterior, 3, scale=1.0)
    once, twice = np.log(pmf_of(fuser, [view])), np.log(pmf_of(fuser, [view, view]))
    evidence_once = once - once.max(axis=1, keepdims=True)
    evidence_twice = twice - twice.max(axis=1, keepdims=True)
    np.testing.assert_allclose(evidence_twice, 2.0**alpha * evidence_once, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["mean_pmf", "ella", "log_linear", "ema", "last", "wls"])
def test_the_same_view_twice_adds_nothing_to_an_average(name) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior)
    view = make_views(posterior, 3)
    np.testing.assert_allclose(pmf_of(fuser, [view, view]), pmf_of(fuser, [view]), rtol=1e-9)


def test_the_same_view_twice_doubles_the_log_evidence_of_a_product() -> None:
    posterior = make_posterior()
    fuser = make_fuser("product", posterior)
    view = make_views(posterior, 2, scale=0.5)
    once, twice = np.log(pmf_of(fuser, [view])), np.log(pmf_of(fuser, [view, view]))
    np.testing.assert_allclose(
        twice - twice.max(axis=1, keepdims=True), 2 * (once - once.max(axis=1, keepdims=True)), rtol=1e-9
    )


def operations(fuser: Fuser, state, view: Views) -> int:
    """How many function calls, Python and C, one update and one prediction take."""
    counts = []
    for _ in range(3):  # the garbage collector may run in between: the least is the fuser's own
        calls = []
        sys.setprofile(lambda frame, event, argument, calls=calls: calls.append(event.endswith("call")))
        try:
            fuser.predict(fuser.update(state, view))
        finally:
            sys.setprofile(None)
        counts.append(sum(calls))
    return min(counts)


@pytest.mark.parametrize("name", sorted(fusers()))
def test_a_thousand_updates_leave_state_size_and_cost_unchanged(name) -> None:
    posterior = make_posterior(networks=2, classes=3, features=4)
    fuser = make_fuser(name, posterior, window=3)
    views = [make_views(posterior, 1, seed) for seed in range(20)]
    state = fuser.initial(1)
    for view in views:  # past the first window, where caches and buffers are warm
        state = fuser.update(state, view)
        fuser.predict(state)
    early_size, early_calls = state_bytes(state), operations(fuser, state, views[0])
    shapes = [getattr(state, f.name).shape for f in fields(state)]
    for step in range(1_000):
        state = fuser.update(state, views[step % len(views)])
    assert state_bytes(state) == early_size
    assert [getattr(state, f.name).shape for f in fields(state)] == shapes
    assert operations(fuser, state, views[0]) == early_calls
    assert np.isfinite(fuser.predict(state)).all()
