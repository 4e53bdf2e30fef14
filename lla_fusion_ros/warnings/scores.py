"""Scores of how unlike the training data a track is; each is large for something out of distribution.

All work on the means over a track's views (METHOD 5), so that their cost does not grow with its length.
Axes: t tracks, c networks, m classes, d features without the bias.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.pmf import entropy, max_shift, normal_points
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.products import last_axis_mean, last_axis_sum, row_norms, weighted_sum

TINY = 1e-9
LARGEST_FEATURE = 1e12  # far beyond any network's features; its square is finite in single precision


def mean_pmf_entropy(pmf: np.ndarray) -> np.ndarray:
    """Entropy of the mean pmf (eq. entropy_fm), the paper's score.  [t, m] -> [t]"""
    return entropy(pmf)


def fused_variance(posterior: EnsemblePosterior, features: np.ndarray) -> np.ndarray:
    """Laplace variance of the mean logits of all views and networks.

    w^T K w = phi^T A^-1 phi with phi the mean feature (METHOD 3), networks independent.  [t, c, D] -> [t, m]
    """
    return posterior.single_variance(features).sum(axis=1, dtype=np.float64) / posterior.networks**2


def laplace_information(logits: np.ndarray, variance: np.ndarray, samples: int = 32) -> np.ndarray:
    """Mutual information between class and weights of the fused prediction, in nats.  2 x [t, m] -> [t]

    `pmf.mutual_information` of `pmf.monte_carlo`, with H = ln sum e^z - sum p z in place of p ln p, which is
    several times as fast.
    """
    deviations = np.sqrt(variance)[:, None, :] * normal_points(samples, logits.shape[1])
    z = max_shift(logits[:, None, :] + deviations)  # [t, samples, m]
    powers = np.exp(z)
    total = last_axis_sum(powers)
    entropies = np.log(total) - last_axis_sum(powers * z) / total
    mean = weighted_sum((1.0 / samples) / total, powers)
    return np.maximum(entropy(mean) - last_axis_mean(entropies), 0.0)


def plain_features(features: np.ndarray) -> np.ndarray:
    """The features without the bias, in single precision, bounded so that squares stay finite.

    Distances need no more digits, and the products are several times as fast.  [t, c, D] -> [t, c, d]
    """
    return bounded(features[..., :-1], LARGEST_FEATURE).astype(np.float32)


def lengths(plain: np.ndarray) -> np.ndarray:
    """Norm of each network's features.  [t, c, d] -> [t, c]"""
    return np.sqrt(row_norms(plain))


def unit_features(plain: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Each network's features at length 1, side by side.  [t, c, d], their lengths [t, c] -> [t, c d]"""
    tracks, networks, width = plain.shape
    unit = plain / (np.sqrt(np.float32(networks)) * np.maximum(norms, TINY))[..., None]
    return unit.reshape(tracks, networks * width)


def neighbour_distance(bank: np.ndarray, unit: np.ndarray, neighbours: int = 5) -> np.ndarray:
    """Mean cosine distance to the nearest features of known tracks.  bank [b, c d], unit [t, c d] -> [t]"""
    similarity = unit.astype(bank.dtype, copy=False).dot(bank.T)
    neighbours = min(neighbours, len(bank))
    similarity.partition(len(bank) - neighbours, axis=1)
    return 1.0 - last_axis_mean(similarity[:, len(bank) - neighbours :].astype(np.float64))


def class_distance(
    plain: np.ndarray, whitening: np.ndarray, centres: np.ndarray, centre_norms: np.ndarray
) -> np.ndarray:
    """Mahalanobis distance to the nearest class, mean over networks.

    plain [t, c, d], whitening of the within-class spread [c, d, d], whitened class means [c, k, d] and their
    squared lengths [c, k] -> [t]
    """
    white = np.matmul(plain.swapaxes(0, 1), whitening)  # [c, t, d]
    squares = centre_norms[:, None] - 2.0 * np.matmul(white, centres.swapaxes(1, 2))  # [c, t, k]
    nearest = np.minimum.reduce(squares, axis=-1) + row_norms(white)
    return _mean_root(np.maximum(nearest, 0.0))


def residual_norm(plain: np.ndarray, middle: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Length of what the features leave outside the principal subspace, mean over networks (as in ViM).

    plain [t, c, d], middle [c, d], residual basis [c, d, r] -> [t]
    """
    outside = np.matmul((plain - middle).swapaxes(0, 1), residual)  # [c, t, r]
    return _mean_root(row_norms(outside))


def _mean_root(squares: np.ndarray) -> np.ndarray:
    """The mean over networks of the lengths whose squares these are.  [c, t] -> [t]"""
    return last_axis_mean(np.sqrt(squares.T).astype(np.float64))
