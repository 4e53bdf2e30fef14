"""Do the cameras that look at an object see the same class? Their last views are compared.

The statistic is a generalised likelihood ratio: under H0 all views show one class y, the likelihood of a view
being its pmf; under H1 one camera sees another class than the rest.
Axes: t tracks, w views (oldest first; those not yet there are zeros in front), m classes.
"""

from __future__ import annotations

import numpy as np

FLOOR = 1e-4  # no single view may rule a class out


def evidence(pmf: np.ndarray) -> np.ndarray:
    """ln of the pmf, not below FLOOR: what one view says for each class.  [..., m]"""
    return np.log(np.maximum(pmf, FLOOR))


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
