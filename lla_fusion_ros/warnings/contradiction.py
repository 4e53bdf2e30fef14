"""Do the views of a track belong together? The last views are compared over time and between cameras.

The statistics are generalised likelihood ratios: under H0 all views show one class y, the likelihood of a
view being its pmf; under H1 the class changes after view k (`switch_statistic`), or one camera sees another
class than the rest (`camera_statistic`). Over time the features are compared as well.
Axes: t tracks, w views (oldest first; those not yet there are zeros in front), m classes, r features.
"""

from __future__ import annotations

import numpy as np

FLOOR = 1e-4  # no single view may rule a class out
PERSISTENT = 3  # views that must show a change: fewer may be a glitch
MOST_SPREAD = 1e6  # bound of a squared distance, so that absurd features cannot overflow
# Before a track of several cameras begins again:
SURE = np.log(100.0)  # log-odds that each camera by itself must show
WITNESSED = 3  # views of a camera that saw the change, after which others need not have been seen


def evidence(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: what one view says for each class.  [..., m]"""
    return np.log(np.maximum(pmf, FLOOR))


def changes(evidence: np.ndarray, features: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What speaks for a change after view k = 1 ... w - PERSISTENT: of the class, of the features.

    The first is the ratio max_y before + max_y after - max_y all, the second the distance of the mean
    features before and after in standard errors, sqrt(n1 n2 / (n1 + n2)) |mean1 - mean2|, features being
    whitened by their spread within tracks; the smallest of those with any one view left out, which may be a
    glitch. Zero where fewer than PERSISTENT views lie before or after.   2 x [t, w - PERSISTENT]
    evidence [t, w, m], features [t, w, r], count [t] int: views so far, also those that have left the window
    """
    window = evidence.shape[1]
    splits = np.arange(1, window - PERSISTENT + 1)
    filled = np.minimum(count, window)
    first = np.maximum(splits - (window - filled[:, None]), 0)  # views before the split.  [t, splits]
    enough = first >= PERSISTENT

    total = evidence.sum(axis=1, dtype=np.float64)[:, None]
    before = np.cumsum(evidence, axis=1, dtype=np.float64)[:, splits - 1]  # [t, splits, m]
    of_class = before.max(axis=-1) + (total - before).max(axis=-1) - total.max(axis=-1)

    features = features.astype(np.float64)
    total = features.sum(axis=1)[:, None]
    before = np.cumsum(features, axis=1)[:, splits - 1]  # [t, splits, r]
    places = np.arange(window)
    there = (places >= window - filled[:, None])[:, None]  # [t, 1, w]
    early = there & (places < splits[:, None])  # [t, splits, w]
    second = filled[:, None] - first
    nearest = np.full(of_class.shape, MOST_SPREAD)
    for left_out, n1, n2, sign in (
        (early, first - 1, second, -1.0),
        (there & ~early, first, second - 1, 1.0),
    ):
        n1, n2 = np.maximum(n1, 1), np.maximum(n2, 1)
        gap = before / n1[..., None] - (total - before) / n2[..., None]  # without the view's own share
        share = (sign / np.where(sign < 0, n1, n2))[..., None]
        # |gap + share f|^2 for every view f that may be left out.  [t, splits, w]
        squares = (gap**2).sum(axis=-1)[..., None] + 2.0 * share * (gap @ features.swapaxes(1, 2))
        squares = squares + share**2 * (features**2).sum(axis=-1)[:, None]
        scaled = (n1 * n2 / (n1 + n2))[..., None] * np.maximum(squares, 0.0)
        nearest = np.minimum(nearest, np.where(left_out, scaled, MOST_SPREAD).min(axis=-1))
    return np.where(enough, of_class, 0.0), np.where(enough, np.sqrt(nearest), 0.0)


def stale_statistic(evidence: np.ndarray, history: np.ndarray, count: np.ndarray) -> np.ndarray:
    """What speaks for the whole window showing another class than the track so far: a gradual change.

    max_y sum ln p(y) - sum ln p(y0), y0 the first class of all views (`history`, their summed pmfs, or those
    faded by now); zero while the window holds all views there are.
    evidence [t, w, m], history [t, m], count [t] int -> [t]
    """
    total = evidence.sum(axis=1, dtype=np.float64)
    old = history.argmax(axis=1)
    ratio = total.max(axis=1) - total[np.arange(len(total)), old]
    return np.where(count > evidence.shape[1], ratio, 0.0)


def switch_statistic(
    evidence: np.ndarray,
    features: np.ndarray,
    count: np.ndarray,
    feature_weight: float,
    history: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The strongest sign of a switch, class ratio + feature_weight * feature change, and its k.  2 x [t]

    k = 0 where the window as a whole speaks against the `history`.
    """
    of_class, of_features = changes(evidence, features, count)
    both = np.column_stack(
        [stale_statistic(evidence, history, count), of_class + feature_weight * of_features]
    )
    return both.max(axis=1), both.argmax(axis=1)


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
    evidence: np.ndarray, camera: np.ndarray, stamp: np.ndarray, split: int, span: int, old: int
) -> bool:
    """Whether a change after view `split` of one track is one of the object, not of the camera that looks.

    PERSISTENT views since must name the new class rather than the `old` one, the newest among them. Nothing
    more is asked where only one camera looks. Otherwise all cameras seen since the change must name the same
    class, each with odds of SURE against the class of before (where only the features changed, that class is
    the same). And every camera that looked within `span` nanoseconds before the change must be among them,
    unless one that surely saw both sides of it has been seen WITNESSED times since: the others have then lost
    the object.
    evidence [w, m], camera [w], stamp [w]: the views there are, oldest first
    """
    before, since = camera[:split], camera[split:]
    new = int(evidence[split:].sum(axis=0).argmax())
    if new != old:
        favour = evidence[split:, new] > evidence[split:, old]
        if not favour[-1] or favour.sum() < PERSISTENT:
            return False
    if len(np.unique(camera)) == 1:
        return True
    witnessed = False
    for name in np.unique(since):
        first, then = (
            evidence[:split][before == name].sum(axis=0),
            evidence[split:][since == name].sum(axis=0),
        )
        if then.argmax() != new or (new != old and then[new] - then[old] < SURE):
            return False
        saw_both = name in before and (new == old or first[old] - first[new] >= SURE)
        if saw_both and np.count_nonzero(since == name) >= WITNESSED:
            witnessed = True
    looking = before[stamp[:split] >= stamp[split] - span]
    return bool(witnessed or np.isin(looking, since).all())
