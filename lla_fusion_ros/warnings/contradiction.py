"""Do the views of a track belong together? The last views are compared over time and between cameras.

The statistics are generalised likelihood ratios: under H0 all views show one class y, the likelihood of a
view being its pmf; under H1 the class changes after view k (`switch_statistic`), or one camera sees another
class than the rest (`camera_statistic`). Over time the features are compared as well.
Axes: t tracks, w views (oldest first; those not yet there are zeros in front), m classes, r features.
"""

from __future__ import annotations

import numpy as np

FLOOR = 1e-4  # no single view may rule a class out
MOST_SPREAD = 1e6  # bound of a squared distance, so that absurd features cannot overflow
# Before a track of several cameras begins again:
SURE = np.log(100.0)  # log-odds that each camera by itself must show
WITNESSED = 3  # views of a camera that saw the change, after which others need not have been seen


def evidence(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: what one view says for each class.  [..., m]"""
    return np.log(np.maximum(pmf, FLOOR))


def changes(evidence: np.ndarray, features: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What speaks for a change after view k = 1 ... w - 1: of the class, of the features.  2 x [t, w - 1]

    The first is the ratio max_y before + max_y after - max_y all, the second the distance of the mean
    features before and after in standard errors, sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2|, features being
    whitened by their spread within tracks.
    evidence [t, w, m], features [t, w, r], count [t] int: views so far, also those that have left the window
    """
    window = evidence.shape[1]
    total = evidence.sum(axis=1, dtype=np.float64)[:, None]
    before = np.cumsum(evidence, axis=1, dtype=np.float64)[:, :-1]  # [t, w - 1, m]
    of_class = before.max(axis=-1) + (total - before).max(axis=-1) - total.max(axis=-1)

    filled = np.minimum(count, window)[:, None]
    first = np.maximum(np.arange(1, window) - (window - filled), 0)  # views before the split.  [t, w - 1]
    second = np.maximum(filled - first, 1)
    total = features.sum(axis=1, dtype=np.float64)[:, None]
    before = np.cumsum(features, axis=1, dtype=np.float64)[:, :-1]  # [t, w - 1, r]
    gap = before / np.maximum(first, 1)[..., None] - (total - before) / second[..., None]
    squares = first * second / (first + second) * (gap**2).sum(axis=-1)  # zero in front of the first view
    return of_class, np.sqrt(np.minimum(squares, MOST_SPREAD))


def switch_statistic(
    evidence: np.ndarray, features: np.ndarray, count: np.ndarray, feature_weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """The strongest sign of a switch, class ratio + feature_weight * feature change, and its k.  2 x [t]"""
    of_class, of_features = changes(evidence, features, count)
    both = of_class + feature_weight * of_features
    return both.max(axis=1), 1 + both.argmax(axis=1)


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


def all_cameras_show(
    evidence: np.ndarray, camera: np.ndarray, stamp: np.ndarray, split: int, span: int
) -> bool:
    """Whether a change after view `split` of one track is one of the object, not of the camera that looks.

    So it is where only one camera looks. Otherwise all cameras seen since the change must name the same
    class, each with odds of SURE against the class of before (where only the features changed, that class is
    the same). And every camera that looked within `span` nanoseconds before the change must be among them,
    unless one that surely saw both sides of it has been seen WITNESSED times since: the others have then lost
    the object.
    evidence [w, m], camera [w], stamp [w]: the views there are, oldest first
    """
    before, since = camera[:split], camera[split:]
    if len(np.unique(camera)) == 1:
        return True
    old, new = evidence[:split].sum(axis=0).argmax(), evidence[split:].sum(axis=0).argmax()
    witnessed = False
    for name in np.unique(since):
        first, then = (
            evidence[:split][before == name].sum(axis=0),
            evidence[split:][since == name].sum(axis=0),
        )
        if then.argmax() != new or (new != old and then[new] - then[old] < SURE):
            return False
        saw_both = name in before and (new == old or first[old] - first[new] >= SURE)
        witnessed = witnessed or bool(saw_both and np.count_nonzero(since == name) >= WITNESSED)
    looking = before[stamp[:split] >= stamp[split] - span]
    return bool(witnessed or np.isin(looking, since).all())
