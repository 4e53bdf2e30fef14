"""Did a track jump to another object? A generalised-likelihood-ratio test over its last views.

Under H0 all views show one class y, the likelihood of a view being its pmf; under H1 the class changes after
view k. The views' features are compared between the two parts as well. Axes: t tracks, w views (oldest first,
views not yet there are zeros in front), m classes, r projected features, k = 1 ... w - 1 the split.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from lla_fusion_ros.products import row_norms

FLOOR = 1e-4  # no single view may rule a class out
MOST_SPREAD = 1e6  # bound of a squared distance, so that absurd features cannot overflow


def log_likelihood(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: the evidence one view gives for each class.  [t, m]"""
    return np.log(np.maximum(pmf, FLOOR))


def class_change(log_pmf: np.ndarray) -> np.ndarray:
    """GLR of a change of class after view k: max_y before + max_y after - max_y all.

    [t, w, m] -> [t, w - 1]
    """
    last = log_pmf.shape[1] - 1
    best = np.maximum.reduce(np.matmul(_parts(last + 1, log_pmf.dtype), log_pmf), axis=-1)
    return best[:, :last] + best[:, last:-1] - best[:, -1:]


@lru_cache(maxsize=16)
def _parts(window: int, kind: np.dtype[Any]) -> np.ndarray:
    """What to multiply views by for their sums before each split, after it, and of all.  [2 w - 1, w]"""
    before = np.tri(window - 1, window)
    return np.concatenate([before, 1.0 - before, np.ones((1, window))]).astype(kind)


@lru_cache(maxsize=16)
def _contrasts(window: int, kind: np.dtype[Any]) -> np.ndarray:
    """What to multiply views by for sqrt(n1 n2 / (n1 + n2)) (mean1 - mean2) at each split.

    A table for each number of views present, 0 ... window; zero where the split falls into the empty part.
    [window + 1, splits, window]
    """
    table = np.zeros((window + 1, window - 1, window))
    for filled in range(window + 1):
        for split in range(window - filled + 1, window):
            first, second = split - (window - filled), window - split
            row = table[filled, split - 1]
            row[window - filled : split], row[split:] = 1.0 / first, -1.0 / second
            row *= np.sqrt(first * second / (first + second))
    return table.astype(kind)


def feature_change(features: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Distance of the mean features before and after view k, in standard errors.

    sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2| with features whitened by their spread within tracks.
    features [t, w, r], filled [t] views present -> [t, w - 1]
    """
    contrasts = _contrasts(features.shape[1], features.dtype)[filled]
    return np.sqrt(np.minimum(row_norms(np.matmul(contrasts, features)), MOST_SPREAD))


def switch_statistic(
    log_pmf: np.ndarray, features: np.ndarray, filled: np.ndarray, feature_weight: float
) -> np.ndarray:
    """The strongest sign of a switch over all splits: class GLR + feature_weight * feature change.  [t]"""
    combined = class_change(log_pmf)
    if feature_weight > 0:
        combined = combined + feature_weight * feature_change(features, filled)
    return np.maximum.reduce(combined, axis=1)
