"""Do the cameras see the same object? The change-point test with cameras in the place of times."""

from __future__ import annotations

import numpy as np

SURE = np.log(100.0)  # what each camera by itself must show before a track of several cameras begins anew


def camera_statistic(log_pmf: np.ndarray, camera: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """GLR of one camera seeing another class than the rest, the largest over cameras.

        max_a [ max_y sum_{views of a} ln p + max_y sum_{views of others} ln p ] - max_y sum_all ln p

    Zero where only one camera has seen the track. Views that do not count (`counts`) are those too old to be
    compared "at one time".
    log_pmf [t, w, m], camera [t, w] int, counts [t, w] bool -> [t]
    """
    cameras = camera[counts]
    if cameras.size == 0 or cameras.min() == cameras.max():
        return np.zeros(len(log_pmf))
    names = np.arange(cameras.max() + 1)
    seen = (camera[:, None, :] == names[:, None]) & counts[:, None, :]  # [t, cameras, w]
    own = np.matmul(seen.astype(log_pmf.dtype), log_pmf)  # [t, cameras, m], zero where it saw nothing
    total = own.sum(axis=1, keepdims=True)
    ratio = own.max(axis=-1) + (total - own).max(axis=-1) - total.max(axis=-1)
    return np.maximum(ratio.max(axis=1), 0.0)


def all_cameras_show(
    log_pmf: np.ndarray, camera: np.ndarray, stamp: np.ndarray, split: int, span: int
) -> bool:
    """Whether a change after view `split` of one track is one of the object, not of the camera that looks.

    Every camera that looked within `span` nanoseconds before the change must have been seen since, and all
    cameras seen since must name the same class, each with odds of SURE against the class of before (where
    only the features changed, that class is the same).
    log_pmf [w, m], camera [w], stamp [w]: the views there are, oldest first
    """
    since = camera[split:]
    looking = camera[:split][stamp[:split] >= stamp[split] - span]
    if not np.isin(looking, since).all():
        return False
    old, new = log_pmf[:split].sum(axis=0).argmax(), log_pmf[split:].sum(axis=0).argmax()
    for name in np.unique(since):
        own = log_pmf[split:][since == name].sum(axis=0)
        if own.argmax() != new or (new != old and own[new] - own[old] < SURE):
            return False
    return True
