"""A million views on one track: what is kept still equals what would be computed from the views again."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.base import SumFuser
from lla_fusion_ros.fusion.ema import Ema
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.types.views import QUALITIES, Views, add
from lla_fusion_ros.warnings.state import Sums
from support.tiny_posterior import make_posterior, make_views

UPDATES = 1_000_000
DIFFERENT = 1000  # views that differ from each other, seen again and again
SUMS = sorted(name for name, fuser in fusers().items() if issubclass(fuser, SumFuser))
POSTERIOR = make_posterior(networks=2, classes=3, features=4)


def views_of_a_long_track() -> list[MeasuredViews]:
    """Sure and unsure views mixed, some thousand times as large as others: the worst for running sums."""
    return [
        measured(make_views(POSTERIOR, 1, seed, scale=10.0 ** (seed % 4 - 1)), POSTERIOR)
        for seed in range(DIFFERENT)
    ]


def stacked(contributions: list) -> dict[str, np.ndarray]:
    """The contributions of all views, field by field.  {name: [views, 1, ...]}"""
    return {
        f.name: np.stack([getattr(part, f.name) for part in contributions]) for f in fields(contributions[0])
    }


def accumulated(columns: dict[str, np.ndarray], rounds: int) -> dict[str, np.ndarray]:
    """All views added one after another, `rounds` times: the additions of `add`, in the same order."""
    totals = {name: np.zeros_like(column[0]) for name, column in columns.items()}
    for _ in range(rounds):
        for name, column in columns.items():
            run = np.concatenate([totals[name][None], column])
            totals[name] = np.add.accumulate(run, axis=0)[-1]
    return totals


def exactly(columns: dict[str, np.ndarray], rounds: int) -> dict[str, np.ndarray]:
    """The same sums without any rounding but the last."""
    return {
        name: np.array([rounds * math.fsum(numbers) for numbers in column.reshape(DIFFERENT, -1).T]).reshape(
            column.shape[1:]
        )
        for name, column in columns.items()
    }


def check_without_drift(contributions: list) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Fields after a million additions, and their exact values."""
    columns = stacked(contributions)
    state = contributions[0]
    for part in contributions[1:]:
        state = add(state, part)
    once = accumulated(columns, 1)
    for name, total in once.items():  # the quick way adds exactly as the state does
        np.testing.assert_array_equal(total, getattr(state, name))
    kept, exact = accumulated(columns, UPDATES // DIFFERENT), exactly(columns, UPDATES // DIFFERENT)
    for name, column in columns.items():
        scale = np.abs(column).sum(axis=0) * (UPDATES // DIFFERENT)
        assert (np.abs(kept[name] - exact[name]) <= 1e-10 * scale).all(), name
    return kept, exact


@pytest.mark.parametrize("name", SUMS)
def test_a_million_views_leave_the_sums_of_a_fuser_where_recomputation_puts_them(name) -> None:
    fuser = make_fuser(name, POSTERIOR)
    contributions = [fuser.contribution(view) for view in views_of_a_long_track()]
    kept, exact = check_without_drift(contributions)
    state = type(contributions[0])
    np.testing.assert_allclose(fuser.predict(state(**kept)), fuser.predict(state(**exact)), atol=1e-6)


def test_a_million_views_leave_the_sums_of_the_warnings_where_recomputation_puts_them() -> None:
    qualities = np.random.default_rng(3).random((DIFFERENT, 1, len(QUALITIES)), np.float32)
    sizes = np.linspace(8, 90, DIFFERENT, dtype=np.float32)[:, None]
    views = zip(views_of_a_long_track(), qualities, sizes, strict=True)
    measured_views = [measured(Views(view.logits, view.features, *own), POSTERIOR) for view, *own in views]
    check_without_drift([Sums.of(view) for view in measured_views])


def test_an_exponential_filter_stays_where_its_last_views_put_it() -> None:
    """It forgets its own rounding as it forgets views, so 20,000 of them tell as much as a million."""
    fuser = Ema(POSTERIOR, {"beta": 0.05})
    views = views_of_a_long_track()
    state = fuser.initial(1)
    for _ in range(20):
        for view in views:
            state = fuser.update(state, view)
    newest = np.stack([view.mean_pmf for view in views])
    weights = 0.05 * 0.95 ** np.arange(DIFFERENT)[::-1]  # older views weigh less than rounding
    np.testing.assert_allclose(fuser.predict(state), np.einsum("l,ltm->tm", weights, newest), atol=1e-12)


@pytest.mark.parametrize("cross", [False, True], ids=["independent", "cross"])
@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-9), (1e-9, 1e-9), (1e-5, 1e-2), (1e-3, 1e-5)])
def test_a_window_of_wls_with_views_that_repeat_equals_its_recomputation(cross, noise, tolerance) -> None:
    """A vehicle that waits sees the same crop again and again; which of the copies leaves must not matter.

    Around noise 1e-5 the copies are only just independent: R then has a condition of 1e10, and two ways of
    computing agree to so many digits less.
    """
    posterior = make_posterior(networks=2, classes=3, features=8, cross=cross)
    fuser = make_fuser("wls", posterior, window=4)
    rng = np.random.default_rng(0)
    state, window = fuser.initial(1), []
    for step in range(50):
        if step % 7 == 0 or rng.random() < 0.2:
            crop = make_views(posterior, 1, step)
        view = Views(
            crop.logits + noise * rng.normal(size=crop.logits.shape),
            crop.features + noise * rng.normal(size=crop.features.shape),
        )
        state = fuser.update(state, view)
        window = [*window, view][-4:]
        again = fuser.initial(1)
        for kept in window:
            again = fuser.update(again, kept)
        np.testing.assert_allclose(fuser.predict(state), fuser.predict(again), atol=tolerance)
