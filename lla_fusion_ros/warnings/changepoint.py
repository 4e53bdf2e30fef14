"""Did a track jump to another object? A generalised-likelihood-ratio test over its last views.

Under H0 all views show one class y, the likelihood of a view being its pmf; under H1 the class changes after
view k. The views' features are compared between the two parts as well. Axes: t tracks, w views (oldest first,
views not yet there are zeros in front), m classes, r projected features, k = 1 ... w - 1 the split.
"""

from __future__ import annotations

import numpy as np

FLOOR = 1e-4  # no single view may rule a class out
MOST_SPREAD = 1e6  # bound of a squared distance, so that absurd features cannot overflow


def log_likelihood(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: the evidence one view gives for each class.  [t, m]"""
    return np.log(np.maximum(pmf, FLOOR))


def class_change(log_pmf: np.ndarray) -> np.ndarray:
    """GLR of a change of class after view k: max_y before + max_y after - max_y all.

    [t, w, m] -> [t, w - 1]
    """
    before = np.cumsum(log_pmf, axis=1)
    total = before[:, -1]
    after = total[:, None, :] - before[:, :-1]
    return before[:, :-1].max(axis=-1) + after.max(axis=-1) - total.max(axis=-1)[:, None]


def feature_change(features: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Distance of the mean features before and after view k, in standard errors.

    sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2| with features whitened by their spread within tracks.
    features [t, w, r], filled [t] views present -> [t, w - 1]
    """
    window = features.shape[1]
    before = np.cumsum(features, axis=1)
    splits = np.arange(1, window)
    second = (window - splits)[None, :]  # views after the split
    first = filled[:, None] - second  # views before it, at most 0 where it falls into the empty part
    exists = first > 0
    mean_first = before[:, :-1] / np.maximum(first, 1)[..., None]
    mean_second = (before[:, -1:] - before[:, :-1]) / second[..., None]
    squares = ((mean_first - mean_second) ** 2).sum(axis=-1)
    squares = np.minimum(squares, MOST_SPREAD) * np.maximum(first, 0) * second / np.maximum(first + second, 1)
    return np.where(exists, np.sqrt(squares), 0.0)


def switch_statistic(
    log_pmf: np.ndarray, features: np.ndarray, filled: np.ndarray, feature_weight: float
) -> np.ndarray:
    """The strongest sign of a switch over all splits: class GLR + feature_weight * feature change.  [t]"""
    combined = class_change(log_pmf)
    if feature_weight > 0:
        combined = combined + feature_weight * feature_change(features, filled)
    return combined.max(axis=1)
