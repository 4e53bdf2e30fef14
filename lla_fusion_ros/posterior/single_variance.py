"""phi^T A_m^-1 phi in single precision, for every frame; `EnsemblePosterior.variance` is the same in double.

Whitened, as the square of L^-1 phi: a sum of squares cannot cancel in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the posterior itself hands out its SingleVariance
    from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

# Far beyond any network's features, small enough that sums of squares stay finite in float32.
LARGEST_FEATURE = 1e12
CHUNK = 64  # views at a time, for memory


class SingleVariance:
    """T_theta phi^T A_m^-1 phi of every view, network and class (the diagonal of eq. 17c)."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        self._classes = posterior.classes
        inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D]
        columns = inverse.transpose(0, 3, 1, 2).astype(np.float32)
        self._whitening = columns.reshape(posterior.networks, posterior.features, -1)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """[views, networks, D] -> [views, networks, classes] float32"""
        phi = _by_network(features)  # [networks, views, D]
        out = np.empty((*features.shape[:2], self._classes), np.float32)
        for start in range(0, len(features), CHUNK):
            prints = phi[:, start : start + CHUNK] @ self._whitening
            prints = prints.reshape(*prints.shape[:2], self._classes, -1)
            out[start : start + CHUNK] = np.einsum("cvmd,cvmd->vcm", prints, prints)
        return out


class ClassVariance:
    """The same for one class of each view, at 1 / classes of the work."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D]
        self._whitening = inverse.transpose(1, 0, 3, 2).astype(np.float32)  # [classes, networks, D, D]

    def __call__(self, features: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """[views, networks, D], [views] int -> [views, networks] float32"""
        phi = _by_network(features)  # [networks, views, D]
        out = np.empty(features.shape[:2], np.float32)
        for label in np.unique(classes):
            rows = np.flatnonzero(classes == label)
            out[rows] = ((phi[:, rows] @ self._whitening[label]) ** 2).sum(axis=-1).T
        return out


def _by_network(features: np.ndarray) -> np.ndarray:
    """[views, networks, D] -> [networks, views, D] float32, bounded"""
    return features.clip(-LARGEST_FEATURE, LARGEST_FEATURE).astype(np.float32).swapaxes(0, 1)
