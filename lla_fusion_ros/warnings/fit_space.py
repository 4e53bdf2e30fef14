"""Where the features of known objects lie, learned from tracks of known classes."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.warnings.model import FeatureSpace
from lla_fusion_ros.warnings.scores import TINY, plain_features, unit_features

RESIDUAL = 32  # directions of the residual subspace, at most half of all
SHRINK = 0.05  # share of the mean variance added to every covariance


def fit_space(features: np.ndarray, steps: np.ndarray, label: np.ndarray) -> FeatureSpace:
    """The feature space of tracks of known classes.

    features [tracks, steps, networks, D], steps, label [tracks]
    """
    known = np.flatnonzero(label >= 0)
    if len(np.unique(label[known])) < 2:
        raise InputError("warnings need validation tracks of at least two classes")
    features, steps, label = features[known], steps[known], label[known]
    exists = np.arange(features.shape[1]) < steps[:, None]  # [tracks, steps]
    views = features[..., :-1][exists].astype(np.float64)  # [views, networks, d]
    of_track = np.nonzero(exists)[0]
    whitening, centres, middle, residual = _per_network(views, label[of_track])
    return FeatureSpace(
        # in 16 bits, as a bundle gives it back
        bank=_class_means(features, steps, label).astype(np.float16).astype(np.float32),
        whitening=whitening.astype(np.float32),
        centres=centres.astype(np.float32),
        middle=middle.astype(np.float32),
        residual=residual.astype(np.float32),
    )


def _means(values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Mean of the rows of each group; zero for an empty one."""
    sums = np.zeros((groups, *values.shape[1:]))
    np.add.at(sums, group, values)
    counts = np.maximum(np.bincount(group, minlength=groups), 1)
    return sums / counts.reshape(-1, *[1] * (values.ndim - 1))


def _shrunk(deviations: np.ndarray) -> np.ndarray:
    """Covariance of centred rows, lifted so that it can be inverted.  [n, d] -> [d, d]"""
    covariance = deviations.T @ deviations / max(len(deviations), 1)
    lift = SHRINK * np.trace(covariance) / len(covariance) + 1e-9
    return covariance + lift * np.eye(len(covariance))


def _per_network(
    views: np.ndarray, label: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Whitening within classes, whitened class means, mean and residual basis of every network."""
    _, of_class = np.unique(label, return_inverse=True)
    classes = int(of_class.max()) + 1
    width = views.shape[2]
    kept = min(RESIDUAL, width // 2) or 1
    whitening, centres, middle, residual = [], [], [], []
    for network in range(views.shape[1]):
        rows = views[:, network]
        means = _means(rows, of_class, classes)
        white = np.linalg.inv(np.linalg.cholesky(_shrunk(rows - means[of_class]))).T
        whitening.append(white)
        centres.append(means @ white)
        middle.append(rows.mean(axis=0))
        _, vectors = np.linalg.eigh(np.cov(rows.T) if width > 1 else np.ones((1, 1)))
        residual.append(vectors[:, :kept])  # eigenvalues rise: the first directions are hardly used
    return np.stack(whitening), np.stack(centres), np.stack(middle), np.stack(residual)


def _class_means(features: np.ndarray, steps: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Unit mean of each class's tracks, seen for 1, 3, 10 and all views.  [classes, networks * d]"""
    entries, labels = [], []
    sums = np.cumsum(features, axis=1, dtype=np.float64)
    for length in (1, 3, 10, features.shape[1]):
        rows = np.flatnonzero(steps >= min(length, 10))
        last = np.minimum(steps[rows], length)
        entries.append(unit_features(plain_features(sums[rows, last - 1] / last[:, None, None])))
        labels.append(label[rows])
    _, of_class = np.unique(np.concatenate(labels), return_inverse=True)
    means = _means(np.concatenate(entries), of_class, int(of_class.max()) + 1)
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), TINY)
