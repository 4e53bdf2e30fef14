"""From a Gaussian over logits to class probabilities, and what the point cloud tells beyond them.

Axes: [..., classes] for one distribution, [..., samples, classes] for a cloud of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, xlogy

from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, slots=True)
class Cloud:
    """The distribution of the class distribution, as samples (eq. 12).

    Attributes:
        points: softmax of each sampled logit vector.    [..., samples, classes]
        pmf: their mean.                                 [..., classes]
    """

    points: np.ndarray
    pmf: np.ndarray


def max_shift(logits: np.ndarray) -> np.ndarray:
    """Logits minus their largest (eq. 11), so that networks become comparable."""
    return logits - logits.max(axis=-1, keepdims=True)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Eq. 10b over the last axis, without overflow."""
    powers = np.exp(max_shift(logits))
    return powers / powers.sum(axis=-1, keepdims=True)


def probit(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E[softmax(z)] in closed form: softmax of the max-shifted mean divided by sqrt(1 + pi/8 variance).

    The shift must come first: without it the result depends on a constant that softmax ignores, and the
    most probable class can change. 2 x [..., classes] -> [..., classes]
    """
    _check_gaussian(mean, variance)
    return softmax(max_shift(mean) / np.sqrt(1.0 + np.pi / 8.0 * variance))


@lru_cache(maxsize=32)
def normal_points(samples: int, dimensions: int) -> np.ndarray:
    """Fixed standard normal points from a scrambled Sobol set: equal inputs give equal outputs.

    [samples, dimensions], read-only.
    """
    if samples < 1:
        raise InputError(f"samples is {samples}, it must be at least 1")
    power = int(np.ceil(np.log2(samples)))  # a Sobol set is balanced for powers of two; the rest is cut off
    from scipy.stats import qmc  # takes most of a second: only for those who sample

    points = ndtri(qmc.Sobol(dimensions, scramble=True, seed=0).random_base2(power)[:samples])
    points.flags.writeable = False
    return points


def monte_carlo(mean: np.ndarray, variance: np.ndarray, samples: int = 64) -> Cloud:
    """Sample logits that are independent between classes, take softmax, average (eq. 12).

    2 x [..., classes]
    """
    _check_gaussian(mean, variance)
    mean, variance = np.asarray(mean, np.float64), np.asarray(variance, np.float64)
    return _cloud(mean, np.sqrt(variance)[..., None, :] * normal_points(samples, mean.shape[-1]))


def monte_carlo_joint(mean: np.ndarray, covariance: np.ndarray, samples: int = 64) -> Cloud:
    """The same for logits that are correlated between classes; the covariance may be singular.

    mean [..., classes], covariance [..., classes, classes]
    """
    mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
    _check_gaussian(mean, np.diagonal(covariance, axis1=-2, axis2=-1))
    roots = square_root(covariance)
    return _cloud(mean, normal_points(samples, mean.shape[-1]) @ roots.swapaxes(-1, -2))


def _check_gaussian(mean: np.ndarray, variance: np.ndarray) -> None:
    if not np.isfinite(mean).all() or not np.isfinite(variance).all():
        raise InputError("the mean or the variance of logits contains NaN or infinity")
    if np.any(variance < 0):
        raise InputError(f"a variance is negative ({np.min(variance):g}); variances of logits must be >= 0")


def _cloud(mean: np.ndarray, deviations: np.ndarray) -> Cloud:
    points = softmax(mean[..., None, :] + deviations)
    return Cloud(points, points.mean(axis=-2))


def square_root(covariance: np.ndarray) -> np.ndarray:
    """S with S S^T = covariance, also where it is only semidefinite.  [..., n, n]"""
    values, vectors = np.linalg.eigh(covariance)
    worst = values.min(initial=0.0)
    if worst < -1e-8 * max(values.max(initial=0.0), 1e-300):
        raise InputError(f"a covariance is not positive semidefinite: it has the eigenvalue {worst:g}")
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def entropy(pmf: np.ndarray) -> np.ndarray:
    """-sum p ln p in nats (eq. 33).  [..., classes] -> [...]"""
    return -xlogy(pmf, pmf).sum(axis=-1)


def mutual_information(cloud: Cloud) -> np.ndarray:
    """Entropy of the mean minus mean of the entropies: what is unknown because the weights are.  [...]"""
    return np.maximum(entropy(cloud.pmf) - entropy(cloud.points).mean(axis=-1), 0.0)


def prob_largest(cloud: Cloud) -> np.ndarray:
    """P(class is the largest): the share of points whose largest element it is.  [..., classes]"""
    classes = cloud.points.shape[-1]
    return np.eye(classes)[cloud.points.argmax(axis=-1)].mean(axis=-2)


def risk(cloud: Cloud) -> np.ndarray:
    """The risk of deciding c1 while c2 holds, for all pairs.  [..., classes (decided), classes (true)]

    Entry c1, c2 is the mean over the cloud of 1(c1 is the largest) p_c2: how often the point would decide c1,
    and how probable c2 then is. It sums to 1; its trace is the probability of deciding right; summed over
    c1 it is the pmf, over c2 it is `prob_largest`.
    """
    samples, classes = cloud.points.shape[-2:]
    decided = np.eye(classes)[cloud.points.argmax(axis=-1)]  # [..., samples, classes]
    return decided.swapaxes(-1, -2) @ cloud.points / samples


def decide(pmf: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The decision of least expected cost, and that cost.

    cost[d, c] is what decision d costs when c is true; there may be more decisions than classes (such as
    "stop and ask").   pmf [..., classes], cost [decisions, classes] -> [...] int, [...]
    """
    cost = np.asarray(cost, np.float64)
    if cost.ndim != 2 or cost.shape[1] != pmf.shape[-1]:
        raise InputError(f"cost matrix has shape {cost.shape}, expected [decisions, {pmf.shape[-1]}]")
    if not np.isfinite(cost).all():
        raise InputError("cost matrix contains NaN or infinity")
    expected = pmf @ cost.T  # [..., decisions]
    return expected.argmin(axis=-1), expected.min(axis=-1)


def among_named(pmf: np.ndarray, reserved: int) -> np.ndarray:
    """Class distributions given that it is one of the named classes: without the last, reserved, outcomes.

    [..., outcomes] -> [..., classes]
    """
    if not reserved:
        return pmf
    named = np.maximum(pmf[..., :-reserved], 1e-12)
    return np.asarray(named / named.sum(axis=-1, keepdims=True))


def about_classes(pmf: np.ndarray, reserved: int) -> np.ndarray:
    """What is said of the named classes: where that is a reserved outcome, the last ones, any of them.

    [..., outcomes] -> [..., classes]
    """
    if not reserved:
        return pmf
    named = pmf[..., :-reserved]
    left = 1.0 - named.sum(axis=-1, keepdims=True)
    return np.asarray(named + left / max(named.shape[-1], 1))


def percent(p: float) -> str:
    """A probability for people; only what is certain is 100%."""
    return ">99%" if 0.995 <= p < 1 else f"{p:.0%}"
