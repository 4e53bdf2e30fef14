"""Did a track jump to another object? A generalised-likelihood-ratio test over its last views.

Under H0 all views show one class y, the likelihood of a view being its pmf; under H1 the class changes after
view k. The views' features are compared between the two parts as well. Axes: t tracks, w views (oldest first,
views not yet there are zeros in front), m classes, r projected features, k = 1 ... w - 1 the split.
"""

from __future__ import annotations

from functools import lru_cache

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
    before = np.add.accumulate(log_pmf, axis=1)
    after = before[:, -1:] - before[:, :-1]
    best = np.maximum.reduce(before, axis=-1)  # its last column is that of all views
    return best[:, :-1] + np.maximum.reduce(after, axis=-1) - best[:, -1:]


@lru_cache(maxsize=8)
def _splits(window: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Constants of `feature_change` by number of views present: a table row for each of 0 ... window.

    1/n1 + 1/n2  [window + 1, splits, 1];  1/n2  [splits, 1];  n1 n2 / (n1 + n2)  [window + 1, splits], which
    is 0 where the split falls into the empty part.
    """
    second = window - np.arange(1, window)  # views after the split
    first = np.arange(window + 1)[:, None] - second  # views before it
    share = np.where(first > 0, first * second / np.maximum(first + second, 1), 0.0)
    return (1.0 / np.maximum(first, 1) + 1.0 / second)[..., None], (1.0 / second)[:, None], share


def feature_change(features: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Distance of the mean features before and after view k, in standard errors.

    sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2| with features whitened by their spread within tracks.
    features [t, w, r], filled [t] views present -> [t, w - 1]
    """
    inverse_sum, inverse_second, share = _splits(features.shape[1])
    before = np.add.accumulate(features, axis=1)
    # S1/n1 - S2/n2 with S2 = S - S1
    difference = before[:, :-1] * inverse_sum[filled] - before[:, -1:] * inverse_second
    squares = np.einsum("tkr,tkr->tk", difference, difference)
    return np.sqrt(np.minimum(squares, MOST_SPREAD) * share[filled])


def switch_statistic(
    log_pmf: np.ndarray, features: np.ndarray, filled: np.ndarray, feature_weight: float
) -> np.ndarray:
    """The strongest sign of a switch over all splits: class GLR + feature_weight * feature change.  [t]"""
    combined = class_change(log_pmf)
    if feature_weight > 0:
        combined = combined + feature_weight * feature_change(features, filled)
    return np.maximum.reduce(combined, axis=1)
