"""Fit the numbers of any fuser on validation tracks, and get its pmf after L views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.calibration.trackviews import TrackViews
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.base import BaseFuser, FitTracks, Fuser, Scalar, Values
from lla_fusion_ros.fusion.fitting.objective import chance_of_an_error
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.metrics import nll
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

LENGTHS = (1, 3, 5, 10, 20, 30)
WEIGHT_PRIORS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # candidates of lambda_w


@dataclass(frozen=True, slots=True)
class MeasuredTracks:
    """Tracks whose entropies, variances and the like are computed once for all fusers."""

    tracks: TrackViews
    views: MeasuredViews

    def fused(self, fuser: Fuser, lengths: Sequence[int] = LENGTHS) -> dict[int, np.ndarray]:
        """The pmf of every track after its first L views.  {L: [tracks with at least L views, classes]}"""
        steps = self.tracks.steps
        reached = [length for length in lengths if (steps >= length).any()]
        if not reached:  # a fold of short tracks only
            return {}
        pmf = pmf_along(fuser, self.views, self.tracks.logits.shape[1], reached)  # [tracks, reached, classes]
        return {length: pmf[steps >= length, place] for place, length in enumerate(reached)}

    def labels(self, length: int) -> np.ndarray:
        """The labels that belong to `fused(...)[length]`."""
        return self.tracks.label[self.tracks.steps >= length]

    def nll(self, fuser: Fuser, lengths: Sequence[int] = LENGTHS) -> float:
        """Mean NLL over tracks, then over lengths: every L counts the same."""
        results = self.fused(fuser, lengths)
        return float(np.mean([nll(pmf, self.labels(length)) for length, pmf in results.items()]))

    def loss(self, fuser: Fuser, lengths: Sequence[int] = LENGTHS) -> float:
        """The NLL where the truth gets 1 - `chance_of_an_error`; the other classes share the rest."""
        results = self.fused(fuser, lengths)
        wrong = chance_of_an_error(sum(map(len, results.values())))
        losses = [smoothed_loss(pmf, self.labels(length), wrong) for length, pmf in results.items()]
        return float(np.mean(losses))


def smoothed_loss(pmf: np.ndarray, label: np.ndarray, wrong: float) -> float:
    """Mean negative log-likelihood where the truth gets 1 - `wrong`."""
    log_pmf = np.log(np.maximum(pmf, 1e-12))
    right = log_pmf[np.arange(len(pmf)), label]
    others = (log_pmf.sum(axis=1) - right) / (pmf.shape[1] - 1)
    return float(-((1 - wrong) * right + wrong * others).mean())


def measure_tracks(posterior: EnsemblePosterior, tracks: TrackViews) -> MeasuredTracks:
    """Check and flatten the tracks."""
    return MeasuredTracks(tracks, flat_views(posterior, tracks.logits, tracks.features))


def fit_fuser(
    name: str,
    posterior: EnsemblePosterior,
    tracks: TrackViews | MeasuredTracks,
    lengths: Sequence[int] = LENGTHS,
    weight_prior: float | None = None,
) -> dict[str, float | list[float]]:
    """The values of a fuser that minimise the loss on `tracks`; its own `fit` where it has one.

    `weight_prior` is the lambda_w of fusers that weigh by variances.
    """
    kind = fusers()[name]
    measured = tracks if isinstance(tracks, MeasuredTracks) else measure_tracks(posterior, tracks)
    plain = measured.tracks
    own_fit = getattr(kind, "fit", None)
    if own_fit is not None:
        fit_on = FitTracks(plain.logits, plain.features, plain.steps, plain.label, plain.source)
        return dict(own_fit(posterior, fit_on))
    fixed = {"prior": weight_prior} if weight_prior is not None and "prior" in kind.options else {}
    if not kind.scalars:
        return dict(fixed)
    return dict(_search(kind, posterior, measured, lengths, fixed))


def fit_weight_prior(posterior: EnsemblePosterior, tracks: MeasuredTracks) -> float:
    """lambda_w: the prior under which variances make the best weights for `wls_robust`."""
    losses = {}
    for prior in WEIGHT_PRIORS:
        values = _search(fusers()["wls_robust"], posterior, tracks, (1, 5, 10, 30), {"prior": prior})
        losses[prior] = tracks.loss(make_fuser("wls_robust", posterior, values))
    return min(losses, key=losses.__getitem__)


def _search(
    kind: type[BaseFuser],
    posterior: EnsemblePosterior,
    tracks: MeasuredTracks,
    lengths: Sequence[int],
    fixed: Values,
) -> dict[str, float]:
    names = list(kind.scalars)
    scalars = [kind.scalars[name] for name in names]

    def values(point: np.ndarray) -> dict[str, float]:
        found = {name: _value(s, u) for name, s, u in zip(names, scalars, point, strict=True)}
        return {**found, **fixed}  # type: ignore[dict-item]

    def loss(point: np.ndarray) -> float:
        return tracks.loss(make_fuser(kind.name, posterior, values(point)), lengths)

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
