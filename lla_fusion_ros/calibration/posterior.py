"""Choose the prior lambda and the temperature T_theta of the posterior on validation NLL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from lla_fusion_ros.calibration.temperature import flat_views, mean_nll
from lla_fusion_ros.calibration.trackviews import TrackViews
from lla_fusion_ros.pmf import probit, softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

PRIORS = tuple(float(value) for value in 10.0 ** np.arange(-2, 3.1, 0.5))
_LOG_TEMPERATURES = (-8.0, 6.0)
_LARGEST_SAMPLE = 1500  # views; the NLL over more of them chooses the same prior


@dataclass(frozen=True, slots=True)
class PosteriorChoice:
    """What was chosen and what it brings.

    Attributes:
        posterior: with the chosen prior and temperature.
        nll: of single crops, mean over networks of the probit pmf, on validation.
        nll_plain: the same without the Laplace term. Where both are equal it is inactive on this data.
    """

    posterior: EnsemblePosterior
    nll: float
    nll_plain: float


def calibrate_posterior(posterior: EnsemblePosterior, tracks: TrackViews, seed: int = 0) -> PosteriorChoice:
    """Search lambda on a grid and T_theta >= 0 for each; T_theta = 0 is a candidate like any other."""
    logits, features, label = flat_views(tracks)
    if len(label) > _LARGEST_SAMPLE:
        rows = np.random.default_rng(seed).choice(len(label), _LARGEST_SAMPLE, replace=False)
        logits, features, label = logits[rows], features[rows], label[rows]
    logits = logits.astype(np.float64)
    plain = mean_nll(softmax(logits).mean(axis=1), label)
    best = (plain, posterior.with_temperature(0.0))
    for prior in PRIORS:
        candidate = posterior.with_prior(prior).with_temperature(1.0)
        variance = candidate.variance(features)

        def loss(log_t: float, variance: np.ndarray = variance) -> float:
            return mean_nll(probit(logits, np.exp(log_t) * variance).mean(axis=1), label)

        found = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded", options={"maxiter": 15})
        if found.fun < best[0] - 1e-6:
            best = (float(found.fun), candidate.with_temperature(float(np.exp(found.x))))
    return PosteriorChoice(best[1], best[0], plain)
