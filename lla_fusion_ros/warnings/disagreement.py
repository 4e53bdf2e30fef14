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
    cameras = camera[counts]
    if cameras.size == 0 or cameras.min() == cameras.max():
        return np.zeros(len(log_pmf))
    names = np.arange(cameras.max() + 1)
    seen = (camera[:, None, :] == names[:, None]) & counts[:, None, :]  # [t, cameras, w]
    own = np.matmul(seen.astype(log_pmf.dtype), log_pmf)  # [t, cameras, m], zero where it saw nothing
    total = own.sum(axis=1, keepdims=True)
    ratio = own.max(axis=-1) + (total - own).max(axis=-1) - total.max(axis=-1)
    return np.maximum(ratio.max(axis=1), 0.0)
