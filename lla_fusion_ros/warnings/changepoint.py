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


def changes(views: np.ndarray, classes: int, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What speaks for a change after view k: of the class, of the features.  2 x [t, w - 1]

    The first is the GLR max_y before + max_y after - max_y all, the second the distance of the mean features
    before and after in standard errors, sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2| with features whitened by
    their spread within tracks.
    views [t, w, m + r]: log-likelihoods of the classes, then features; count [t] int: views so far
    """
    window, splits = views.shape[1], views.shape[1] - 1
    compared = np.matmul(_parts(window, views.dtype).take(count, axis=0, mode="clip"), views)
    best = np.maximum.reduce(compared[:, : 2 * splits + 1, :classes], axis=-1)
    squares = row_norms(compared[:, 2 * splits + 1 :, classes:])
    of_class = best[:, :splits] + best[:, splits:-1] - best[:, -1:]
    return of_class, np.sqrt(np.minimum(squares, MOST_SPREAD))


@lru_cache(maxsize=16)
def _parts(window: int, kind: np.dtype[Any]) -> np.ndarray:
    """What to multiply views by, for each number of views present.  [window + 1, 3 splits + 1, window]

    The first rows give their sums before each split, after it, and of all; the last ones
    sqrt(n1 n2 / (n1 + n2)) (mean1 - mean2) at each split, zero where it falls into the empty part.
    """
    before = np.tri(window - 1, window)
    sums = np.concatenate([before, 1.0 - before, np.ones((1, window))])
    contrasts = np.zeros((window + 1, window - 1, window))
    for filled in range(window + 1):
        for split in range(window - filled + 1, window):
            first, second = split - (window - filled), window - split
            row = contrasts[filled, split - 1]
            row[window - filled : split], row[split:] = 1.0 / first, -1.0 / second
            row *= np.sqrt(first * second / (first + second))
    every = np.broadcast_to(sums, (window + 1, *sums.shape))
    return np.concatenate([every, contrasts], axis=1).astype(kind)


def switch_statistic(views: np.ndarray, classes: int, count: np.ndarray, feature_weight: float) -> np.ndarray:
    """The strongest sign of a switch over all splits: class GLR + feature_weight * feature change.  [t]

    The arguments are those of `changes`.
    """
    of_class, of_features = changes(views, classes, count)
    return np.maximum.reduce(of_class + feature_weight * of_features, axis=1)
