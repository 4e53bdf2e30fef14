"""Numbers from the state of tracks: p-values, and the scores of how unlike the training data a track is.

Each score is large for something out of distribution. All work on the means over a track's views, so that
their cost does not grow with its length.
Axes: t tracks, w views, c networks, m classes, D features with the 1 for the bias, d features without it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import entropy, max_shift, normal_points
from lla_fusion_ros.warnings.model import SCORES, FeatureSpace, WarningModel
from lla_fusion_ros.warnings.state import RecentViews, Sums

# Prior precision of the Laplace scores. The prior that calibrates single views may be so strong that the
# variance only measures the length of the features; under a weak one it measures the distance from the
# training views of a class, which is what tells a stranger.
WEAK_PRIOR = 1.0
SETTLED = 10  # views of a track after which its scores count as settled
TINY = 1e-9
FLOOR = 1e-4  # no single view may rule a class out
LARGEST_FEATURE = 1e12  # far beyond any network's features; its square is finite in single precision
# Scores that enter as logarithms, and what is added to each before.
LOGARITHMIC = {
    "entropy": 1e-4,
    "information": 1e-6,
    "neighbours": 1e-4,
    "mahalanobis": 1e-6,
    "residual": 1e-6,
    "disagreement": 1e-4,
    "view_entropy": 1e-4,
    "variance": 1e-9,
    "length": 0.0,
}


def weak_posterior(posterior: EnsemblePosterior) -> EnsemblePosterior:
    """The posterior that the Laplace scores use; keep it, as factorising takes longer than many frames."""
    return posterior.with_prior(WEAK_PRIOR).with_temperature(1.0)


def known_scores(
    model: WarningModel, weak: EnsemblePosterior, sums: Sums
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """mutual_information, ood_score, p_known and p_readable of each track.  4 x [t]"""
    means = sums.means()
    table, information = score_table(model.space, weak, means, model.unknown.coefficients != 0)
    score = model.unknown(table)
    return information, score, *model.p_values(score, means.quality, means.log_size, means.count)


def evidence(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: what one view says for each class.  [..., m]"""
    return np.log(np.maximum(pmf, FLOOR))


def camera_statistic(evidence: np.ndarray, camera: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Ratio of one camera seeing another class than the rest, the largest over cameras.

        max_a [ max_y sum_{views of a} ln p + max_y sum_{views of others} ln p ] - max_y sum_all ln p

    Zero where only one camera has seen the track. Views that do not count (`counts`) are those too old to be
    compared "at one time".
    evidence [t, w, m], camera [t, w] int, counts [t, w] bool -> [t]
    """
    counted = np.where(counts[..., None], evidence, 0.0).astype(np.float64)
    total = counted.sum(axis=1)  # [t, m]
    largest = np.zeros(len(evidence))
    for name in np.unique(camera[counts]):
        own = (counted * (camera == name)[..., None]).sum(axis=1)  # zero where it saw nothing
        ratio = own.max(axis=-1) + (total - own).max(axis=-1) - total.max(axis=-1)
        largest = np.maximum(largest, ratio)
    return largest


def agreement(model: WarningModel, recent: RecentViews, began: np.ndarray) -> np.ndarray:
    """p_cameras_agree of each track, by its last views since it `began`.  [t]"""
    newest = recent.stamp.max(axis=1)
    oldest = np.maximum(newest - model.camera_span_ns, began)
    together = recent.present & (recent.stamp >= oldest[:, None])
    return model.camera.p_value(camera_statistic(recent.evidence, recent.camera, together))


def score_table(
    space: FeatureSpace, weak: EnsemblePosterior, means: Sums, used: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """All scores of SCORES, and the Laplace mutual information in nats.  [t, scores], [t]

    used [scores] bool: the scores to compute, the others are 0; None: all
    """
    variance = fused_variance(weak, means.features)
    information = laplace_information(means.logits, variance)
    plain = plain_features(means.features)
    top = means.logits.argmax(axis=1)
    scores: dict[str, Callable[[], np.ndarray]] = {
        "entropy": lambda: entropy(means.pmf),  # eq. 33, the paper's score
        "information": lambda: information,
        "energy": lambda: -means.energy,
        "neighbours": lambda: neighbour_distance(space.bank, unit_features(plain), space.neighbours),
        "mahalanobis": lambda: class_distance(plain, space.whitening, space.centres),
        "residual": lambda: residual_norm(plain, space.middle, space.residual),
        "disagreement": lambda: means.disagreement,
        "view_entropy": lambda: means.entropy,
        "feature_norm": lambda: np.log(np.maximum(lengths(plain), 1e-6)).mean(axis=1, dtype=np.float64),
        "view_norm": lambda: means.log_norm,
        "top_logit": lambda: -means.logits.max(axis=1),
        "variance": lambda: variance[np.arange(len(top)), top],
        "length": lambda: means.count.clip(1.0, SETTLED),
    }
    table = np.zeros((len(top), len(SCORES)))
    for column in range(len(SCORES)) if used is None else np.flatnonzero(used).tolist():
        name = SCORES[column]
        score = scores[name]()
        table[:, column] = np.log(score + LOGARITHMIC[name]) if name in LOGARITHMIC else score
    return table, information


def fused_variance(posterior: EnsemblePosterior, features: np.ndarray) -> np.ndarray:
    """Laplace variance of the mean logits of all views and networks.

    w^T K w = phi^T A^-1 phi with phi the mean feature, networks independent.  [t, c, D] -> [t, m]
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
    total = powers.sum(axis=-1, keepdims=True)
    pmf = powers / total
    entropies = np.log(total[..., 0]) - (pmf * z).sum(axis=-1)
    return np.maximum(entropy(pmf.mean(axis=1)) - entropies.mean(axis=1), 0.0)


def plain_features(features: np.ndarray) -> np.ndarray:
    """The features without the bias, in single precision, bounded so that squares stay finite.

    Distances need no more digits, and the products are several times as fast.  [t, c, D] -> [t, c, d]
    """
    return np.clip(features[..., :-1], -LARGEST_FEATURE, LARGEST_FEATURE).astype(np.float32)


def lengths(plain: np.ndarray) -> np.ndarray:
    """Norm of each network's features.  [t, c, d] -> [t, c]"""
    return np.sqrt((plain**2).sum(axis=-1))


def unit_features(plain: np.ndarray) -> np.ndarray:
    """Each network's features at length 1, side by side, at length 1 in all.  [t, c, d] -> [t, c d]"""
    tracks, networks, width = plain.shape
    unit = plain / (np.sqrt(np.float32(networks)) * np.maximum(lengths(plain), TINY))[..., None]
    return unit.reshape(tracks, networks * width)


def neighbour_distance(bank: np.ndarray, unit: np.ndarray, neighbours: int) -> np.ndarray:
    """Mean cosine distance to the nearest of the bank.  bank [b, c d], unit [t, c d] -> [t]"""
    nearest = min(neighbours, len(bank))
    similarity = np.partition(unit @ bank.T, len(bank) - nearest, axis=1)
    return 1.0 - similarity[:, len(bank) - nearest :].mean(axis=1, dtype=np.float64)


def class_distance(plain: np.ndarray, whitening: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Mahalanobis distance to the nearest class, mean over networks.

    plain [t, c, d], whitening of the within-class spread [c, d, d], whitened class means [c, k, d] -> [t]
    """
    white = plain.swapaxes(0, 1) @ whitening  # [c, t, d]
    # |a - b|^2 = |a|^2 - 2 a b + |b|^2: far less memory than all differences
    squares = (centres**2).sum(axis=-1)[:, None] - 2.0 * white @ centres.swapaxes(1, 2)  # [c, t, k]
    nearest = squares.min(axis=-1) + (white**2).sum(axis=-1)
    return np.sqrt(np.maximum(nearest, 0.0)).mean(axis=0, dtype=np.float64)


def residual_norm(plain: np.ndarray, middle: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Length of what the features leave outside the principal subspace, mean over networks (as in ViM).

    plain [t, c, d], middle [c, d], residual basis [c, d, r] -> [t]
    """
    outside = (plain - middle).swapaxes(0, 1) @ residual  # [c, t, r]
    return np.sqrt((outside**2).sum(axis=-1)).mean(axis=0, dtype=np.float64)
