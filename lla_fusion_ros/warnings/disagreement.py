"""Do the cameras see the same object? The change-point test with cameras in the place of times."""

from __future__ import annotations

import numpy as np


def camera_statistic(log_pmf: np.ndarray, camera: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """GLR of one camera seeing another class than the rest, the largest over cameras.

        max_a [ max_y sum_{views of a} ln p + max_y sum_{views of others} ln p ] - max_y sum_all ln p

    Zero where only one camera has seen the track. Views that do not count (`counts`) are those too old to be
    compared "at one time".
    log_pmf [t, w, m], camera [t, w] int, counts [t, w] bool -> [t]
    """
    best = np.zeros(len(log_pmf))
    cameras = camera[counts]
    if cameras.size == 0 or cameras.min() == cameras.max():
        return best
    evidence = log_pmf * counts[..., None]
    total = evidence.sum(axis=1)
    for name in np.unique(cameras):
        own = (evidence * (camera == name)[..., None]).sum(axis=1)
        best = np.maximum(best, own.max(axis=-1) + (total - own).max(axis=-1) - total.max(axis=-1))
    return best
