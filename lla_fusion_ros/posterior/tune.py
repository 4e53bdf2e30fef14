"""Choose the prior and T_theta on validation data by the negative log-likelihood of one network's prediction.

The paper asks for T_theta >= 1; there is no reason for that on every data set, so the search goes down to 0.
At 0 the Laplace term is inactive, and the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.full import FullPosterior
from lla_fusion_ros.posterior.kron import KronPosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import probit

AnyPosterior = TypeVar("AnyPosterior", EnsemblePosterior, FullPosterior, KronPosterior)
LOG_TEMPERATURE = (-7.0, 7.0)  # natural logarithm of T_theta: where the search looks
GAIN = 1e-4  # nats per view: what T_theta > 0 must gain over T_theta = 0 to count as active


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the validation data chose.

    Attributes:
        prior_precision, temperature: the choice; temperature 0 where Laplace gains nothing.
        nll: mean negative log-likelihood per view and network at the choice.
        nll_plain: the same for softmax of the logits, T_theta = 0.
        table: (prior precision, its best temperature, nll) of every prior tried.
    """

    prior_precision: float
    temperature: float
    nll: float
    nll_plain: float
    table: tuple[tuple[float, float, float], ...]

    @property
    def active(self) -> bool:
        """Whether the Laplace term changes predictions at all."""
        return self.temperature > 0

    def sentence(self) -> str:
        """For the report."""
        if not self.active:
            return (
                f"The Laplace term is inactive on this data: no T_theta > 0 lowers the validation NLL of "
                f"{self.nll_plain:.4f} by more than {GAIN:g}."
            )
        return (
            f"T_theta = {self.temperature:.3g} with prior precision {self.prior_precision:.3g} lowers the "
            f"validation NLL of one view from {self.nll_plain:.4f} to {self.nll:.4f}."
        )


def tune(
    posterior: AnyPosterior,
    logits: np.ndarray,
    features: np.ndarray,
    labels: np.ndarray,
    priors: Sequence[float] | None = None,
) -> tuple[AnyPosterior, Tuning]:
    """The posterior with the prior and T_theta that minimise the validation NLL, and how they were chosen.

    Args:
        logits, features: of validation views.        [n, networks, classes], [n, networks, D]
        labels: their classes.                        [n]
        priors: precisions to try; by default the posterior's own times 10^-3 ... 10^3.
    """
    labels = np.asarray(labels)
    if len(logits) == 0 or len(logits) != len(features) or len(logits) != len(labels):
        raise InputError(
            f"cannot tune on {len(logits)} logits, {len(features)} features and {len(labels)} labels; "
            "they must be as many as each other, and not none"
        )
    if priors is None:
        priors = [posterior.prior_precision * 10.0**power for power in range(-3, 4)]
    table = []
    for precision in priors:
        variance = posterior.with_prior(precision).with_temperature(1.0).variance(features)
        temperature, nll = _best_temperature(logits, variance, labels)
        table.append((float(precision), temperature, nll))
    plain = _nll(logits, np.zeros_like(logits), labels)
    precision, temperature, nll = min(table, key=lambda row: row[2])
    if plain - nll <= GAIN:
        precision, temperature, nll = posterior.prior_precision, 0.0, plain
    tuned = posterior.with_prior(precision).with_temperature(temperature)
    return tuned, Tuning(precision, temperature, nll, plain, tuple(table))


def _best_temperature(logits: np.ndarray, variance: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    def loss(log_temperature: float) -> float:
        return _nll(logits, np.exp(log_temperature) * variance, labels)

    grid = np.linspace(*LOG_TEMPERATURE, 8)  # the loss need not be unimodal over 14 powers of e
    values = [loss(point) for point in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(found.x)), float(found.fun)


def _nll(logits: np.ndarray, variance: np.ndarray, labels: np.ndarray) -> float:
    pmf = probit(logits, variance)  # [n, networks, classes]
    chosen = np.take_along_axis(pmf, labels[:, None, None], axis=-1)
    return float(-np.log(np.maximum(chosen, 1e-300)).mean())
