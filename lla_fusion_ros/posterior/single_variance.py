"""phi^T A_m^-1 phi in single precision, as fast as it goes on a CPU: for every frame, not for fitting.

Whitened, the square of L^-1 phi, and not vech(phi phi^T) times weights: a sum of squares cannot cancel in
float32, and needs no gather. Two things make it fast (`python tools/compare_variance_forms.py` measures it):
L^-1 is a triangle, so cutting it into row blocks saves up to half of the products, and with the classes
innermost the sum of squares runs along contiguous memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the posterior itself hands out its SingleVariance
    from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

# Far beyond any network's features, small enough that sums of squares stay finite in float32.
LARGEST_FEATURE = 1e12
# (least number of features, row blocks): more blocks save products but cost calls.
BLOCKS = ((128, 16), (32, 4), (0, 1))


def row_blocks(posterior: EnsemblePosterior) -> list[np.ndarray]:
    """sqrt(T_theta) L^-1 in blocks of rows, what is zero left out.

    Block b, [networks, end, rows * classes] float32, applies to the first `end` features.
    """
    size = posterior.features
    inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D], lower
    count = next(blocks for least, blocks in BLOCKS if size >= least)
    edges = np.linspace(0, size, count + 1).astype(int)
    blocks = []
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        rows = inverse[:, :, start:end, :end]  # columns after `end` are zero in a lower triangle
        flat = rows.transpose(0, 3, 2, 1).reshape(posterior.networks, end, -1)
        blocks.append(np.ascontiguousarray(flat, np.float32))
    return blocks


class SingleVariance:
    """T_theta phi^T A_m^-1 phi of every view, network and class (the diagonal of eq. linearizeCov), numpy."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        self._classes = posterior.classes
        self._blocks = row_blocks(posterior)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """[views, networks, D] -> [views, networks, classes] float32"""
        phi = np.empty((features.shape[1], features.shape[0], features.shape[2]), np.float32)
        np.clip(features.swapaxes(0, 1), -LARGEST_FEATURE, LARGEST_FEATURE, out=phi, casting="same_kind")
        total = np.zeros((*phi.shape[:2], self._classes), np.float32)
        for block in self._blocks:
            prints = np.matmul(phi[..., : block.shape[1]], block)
            np.square(prints, out=prints)
            total += prints.reshape(*phi.shape[:2], block.shape[2] // self._classes, self._classes).sum(
                axis=-2
            )
        return total.swapaxes(0, 1)
