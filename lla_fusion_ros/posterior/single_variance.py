"""phi^T A_m^-1 phi in single precision, as fast as it goes on a CPU: for every frame, not for fitting.

Whitened, the square of L^-1 phi, and not vech(phi phi^T) times weights: a sum of squares cannot cancel in
float32, and needs no gather. Two things make it fast:
L^-1 is a triangle, so cutting it into row blocks saves nearly half of the products, and with the classes
innermost the sum of squares runs along contiguous memory.
"""

from __future__ import annotations

import math
from threading import local
from typing import TYPE_CHECKING

import numpy as np

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.products import row_norms

if TYPE_CHECKING:  # the posterior itself hands out its SingleVariance
    from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

# Far beyond any network's features, small enough that sums of squares stay finite in float32.
LARGEST_FEATURE = 1e12
ROWS = 16  # of a block: fewer save products but cost calls; 16 rows of any number of classes fill cache lines
LINE = 16  # float32 numbers, a cache line
HUGE = 1 << 20  # float32 numbers, 4 MB
CHUNK = 64  # views at a time: their products stay in the cache


def row_blocks(posterior: EnsemblePosterior) -> list[np.ndarray]:
    """sqrt(T_theta) L^-1 in blocks of rows, what is zero left out.

    Block b, [networks, end, rows * classes] float32, applies to the first `end` features. All have ROWS rows
    but the first, which takes in what is left over: it is the widest.
    """
    size = posterior.features
    inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D], lower
    first = ROWS + size % ROWS if size > ROWS else size
    edges = [0, *range(first, size + 1, ROWS)]
    blocks = _aligned(
        [
            (posterior.networks, end, (end - start) * posterior.classes)
            for start, end in zip(edges[:-1], edges[1:], strict=True)
        ]
    )
    for start, end, block in zip(edges[:-1], edges[1:], blocks, strict=True):
        rows = inverse[:, :, start:end, :end]  # columns after `end` are zero in a lower triangle
        block[...] = rows.transpose(0, 3, 2, 1).reshape(block.shape)
    return blocks


def _aligned(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Float32 arrays in one piece of memory, each at the start of a cache line.

    Off by 16 bytes, products with 16 crops take a tenth longer in torch. In one piece, because numpy asks for
    huge pages from 4 MB on, and all blocks are read for every frame.
    """
    lengths = [math.ceil(math.prod(shape) / LINE) * LINE for shape in shapes]
    memory = np.empty(max(sum(lengths) + LINE, HUGE), np.float32)
    start = -memory.ctypes.data % (4 * LINE) // 4
    arrays = []
    for shape, length in zip(shapes, lengths, strict=True):
        arrays.append(memory[start : start + math.prod(shape)].reshape(shape))
        start += length
    return arrays


class SingleVariance:
    """T_theta phi^T A_m^-1 phi of every view, network and class (the diagonal of eq. linearizeCov), numpy."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        self._networks, self._classes = posterior.networks, posterior.classes
        self._blocks = row_blocks(posterior)
        self._widest = max(block.shape[2] for block in self._blocks)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """[views, networks, D] -> [views, networks, classes] float32"""
        out = np.empty((*features.shape[:2], self._classes), np.float32)
        for start in range(0, len(features), CHUNK):
            self._fill(features[start : start + CHUNK], out[start : start + CHUNK].swapaxes(0, 1))
        return out

    def _fill(self, features: np.ndarray, total: np.ndarray) -> None:
        """Write the variances of at most CHUNK views to `total`.  [networks, views, classes]"""
        views = len(features)
        phi = _single(features)
        memory = _memory(self._networks * views * self._widest)
        for number, block in enumerate(self._blocks):
            shape = (self._networks, views, block.shape[2])
            prints = memory[: math.prod(shape)].reshape(shape)
            np.matmul(phi[..., : block.shape[1]], block, out=prints)
            by_row = prints.reshape(self._networks, views, -1, self._classes)
            squares = np.einsum("cvrm,cvrm->cvm", by_row, by_row)
            if number == 0:
                total[...] = squares
            else:
                total += squares


class ClassVariance:
    """T_theta phi^T A_m^-1 phi of every view and network for one class of each view, numpy."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D]
        # [classes, networks, D, D]: what one class needs lies side by side
        self._whitening = np.ascontiguousarray(inverse.transpose(1, 0, 3, 2), np.float32)

    def __call__(self, features: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """[views, networks, D], [views] int -> [views, networks] float32"""
        if len(features) == 1:
            return row_norms(np.matmul(_single(features), self._whitening[classes[0]])).T
        order = classes.argsort()  # views of one class side by side: one product for each class
        ordered = classes[order]
        phi = _single(features[order])
        prints = np.empty_like(phi)
        ends = [*((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(ordered)]
        start = 0
        for end in ends if len(ordered) else ():
            np.matmul(phi[:, start:end], self._whitening[ordered[start]], out=prints[:, start:end])
            start = end
        out = np.empty((len(features), features.shape[1]), np.float32)
        out[order] = row_norms(prints).T
        return out


def _single(features: np.ndarray) -> np.ndarray:
    """The features in single precision, bounded, network by network.  [n, c, D] -> [c, n, D] float32"""
    return np.ascontiguousarray(bounded(features, LARGEST_FEATURE).swapaxes(0, 1), np.float32)


_KEPT = local()  # memory for the products, one for each thread: fresh pages cost more than the products


def _memory(numbers: int) -> np.ndarray:
    """At least so many float32, whatever is in them."""
    memory: np.ndarray | None = getattr(_KEPT, "memory", None)
    if memory is None or len(memory) < numbers:
        memory = _KEPT.memory = np.empty(numbers, np.float32)
    return memory
