"""Scores of how unlike the training data a track is; each is large for something out of distribution.

All work on the means over a track's views (METHOD 5), so that their cost does not grow with its length.
Axes: t tracks, c networks, m classes, d features without the bias.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.pmf import entropy, max_shift, normal_points
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

TINY = 1e-9


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
    total = powers.sum(axis=-1)
    entropies = np.log(total) - np.einsum("tsm,tsm->ts", powers, z) / total
    mean = np.einsum("tsm,ts->tm", powers, 1.0 / (samples * total))
    return np.maximum(entropy(mean) - entropies.mean(axis=1), 0.0)


def unit_features(features: np.ndarray) -> np.ndarray:
    """Each network's features without the bias, at length 1, side by side.  [t, c, D] -> [t, c d]"""
    plain = features[..., :-1]
    norms = np.linalg.norm(plain, axis=-1, keepdims=True)
    unit = plain / np.maximum(norms, TINY)
    tracks, networks, width = unit.shape
    return unit.reshape(tracks, networks * width) / np.sqrt(networks)


def neighbour_distance(bank: np.ndarray, unit: np.ndarray, neighbours: int = 5) -> np.ndarray:
    """Mean cosine distance to the nearest features of known tracks.  bank [b, c d], unit [t, c d] -> [t]"""
    similarity = unit.astype(bank.dtype) @ bank.T
    neighbours = min(neighbours, len(bank))
    nearest = np.partition(similarity, len(bank) - neighbours, axis=1)[:, len(bank) - neighbours :]
    return 1.0 - nearest.mean(axis=1, dtype=np.float64)


def class_distance(features: np.ndarray, whitening: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Mahalanobis distance to the nearest class, mean over networks.

    features [t, c, D], whitening of the within-class spread [c, d, d], whitened class means [c, k, d] -> [t]
    """
    white = np.matmul(features[..., :-1].swapaxes(0, 1), whitening)  # [c, t, d]
    squares = (white**2).sum(-1)[..., None] + (centres**2).sum(-1)[:, None, :]
    squares -= 2.0 * np.matmul(white, centres.swapaxes(1, 2))  # [c, t, k]
    return np.sqrt(np.maximum(squares.min(axis=-1), 0.0)).mean(axis=0)


def residual_norm(features: np.ndarray, middle: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Length of what the features leave outside the principal subspace, mean over networks (as in ViM).

    features [t, c, D], middle [c, d], residual basis [c, d, r] -> [t]
    """
    outside = np.matmul((features[..., :-1] - middle).swapaxes(0, 1), residual)  # [c, t, r]
    return np.linalg.norm(outside, axis=-1).mean(axis=0)
