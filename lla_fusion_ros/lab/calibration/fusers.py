"""Fit the numbers of any fuser on validation tracks, and get its pmf after L views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import pmf_along
from lla_fusion_ros.fusion.base import Fuser, Scalar, Values
from lla_fusion_ros.fusion.learn import chance_of_an_error, smoothed_nll
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.track_views import LENGTHS, TrackViews

WEIGHT_PRIORS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # candidates of lambda_w


def fused_after(
    fuser: Fuser, tracks: TrackViews, views: MeasuredViews, lengths: Sequence[int] = LENGTHS
) -> dict[int, np.ndarray]:
    """The pmf of every track after its first L views.  {L: [tracks with at least L views, classes]}"""
    reached = [length for length in lengths if (tracks.steps >= length).any()]
    if not reached:  # short tracks only
        return {}
    pmf = pmf_along(fuser, views, tracks.longest, reached)  # [tracks, reached, classes]
    return {length: pmf[tracks.steps >= length, place] for place, length in enumerate(reached)}


def fuser_loss(fuser: Fuser, tracks: TrackViews, views: MeasuredViews) -> float:
    """Mean NLL over tracks, then over lengths (every L counts the same), smoothed as all fits are."""
    results = fused_after(fuser, tracks, views)
    wrong = chance_of_an_error(sum(map(len, results.values())))
    losses = [
        smoothed_nll(np.log(np.maximum(pmf, 1e-12)), tracks.reaching(length).label, wrong)
        for length, pmf in results.items()
    ]
    return float(np.mean(losses))


def fit_fuser(
    name: str, tracks: TrackViews, views: MeasuredViews, weight_prior: float | None = None
) -> dict[str, float | list[float]]:
    """The values of a fuser that minimise the loss on `tracks`; its own `fit` where it has one.

    `views` are those of the tracks (`flat_views`), `weight_prior` is the lambda_w of fusers that weigh by
    variances.
    """
    kind = fusers()[name]
    fitted = kind.fit(views.posterior, tracks)
    if fitted is not None:
        return fitted
    fixed = {"prior": weight_prior} if weight_prior is not None and "prior" in kind.options else {}
    return dict(_search(kind, tracks, views, fixed) if kind.scalars else fixed)


def fit_weight_prior(tracks: TrackViews, views: MeasuredViews) -> float:
    """lambda_w: the prior under which variances make the best weights for `wls_robust`."""
    losses = {}
    for prior in WEIGHT_PRIORS:
        values = _search(fusers()["wls_robust"], tracks, views, {"prior": prior})
        losses[prior] = fuser_loss(make_fuser("wls_robust", views.posterior, values), tracks, views)
    return min(losses, key=losses.__getitem__)


def _search(kind: type[Fuser], tracks: TrackViews, views: MeasuredViews, fixed: Values) -> dict[str, float]:
    names = list(kind.scalars)
    scalars = [kind.scalars[name] for name in names]

    def values(point: np.ndarray) -> dict[str, float]:
        found = {name: _value(s, u) for name, s, u in zip(names, scalars, point, strict=True)}
        return {**found, **fixed}  # type: ignore[dict-item]

    def loss(point: np.ndarray) -> float:
        return fuser_loss(make_fuser(kind.name, views.posterior, values(point)), tracks, views)

    found = minimize(
        loss,
        np.array([_unit(scalar, scalar.start) for scalar in scalars]),
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(names),
        options={"maxiter": 40, "eps": 1e-3, "ftol": 1e-7},
    )
    return values(found.x)


def _unit(scalar: Scalar, value: float) -> float:
    """Where a value lies between its bounds, 0 to 1."""
    if scalar.log:
        return float(np.log(value / scalar.low) / np.log(scalar.high / scalar.low))
    return (value - scalar.low) / (scalar.high - scalar.low)


def _value(scalar: Scalar, unit: float) -> float:
    unit = min(max(float(unit), 0.0), 1.0)
    if scalar.log:
        value = scalar.low * (scalar.high / scalar.low) ** unit
    else:
        value = scalar.low + unit * (scalar.high - scalar.low)
    return float(np.clip(value, scalar.low, scalar.high))
