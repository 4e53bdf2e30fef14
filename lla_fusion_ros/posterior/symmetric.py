"""Symmetric matrices as packed lower triangles: half the numbers to sum and to keep."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

CHUNK_NUMBERS = 1 << 22  # 32 MB of float64: bounds the products that are alive at once


@lru_cache(maxsize=16)
def triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle, the order of every packed vector.  2 x [size (size + 1) / 2]"""
    rows, columns = np.tril_indices(size)
    rows.flags.writeable = columns.flags.writeable = False
    return rows, columns


def unpack(packed: np.ndarray, size: int) -> np.ndarray:
    """The symmetric [..., size, size] whose lower triangle is `packed`."""
    rows, columns = triangle(size)
    matrices = np.empty((*packed.shape[:-1], size, size), packed.dtype)
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


def outer(vectors: np.ndarray) -> np.ndarray:
    """The lower triangle of phi phi^T.  [n, size] -> [n, size (size + 1) / 2]"""
    size = vectors.shape[-1]
    products = np.empty((len(vectors), size * (size + 1) // 2), vectors.dtype)
    start = 0
    for row in range(size):  # row by row is three times as fast as indexing both factors
        stop = start + row + 1
        np.multiply(vectors[:, row : row + 1], vectors[:, : row + 1], out=products[:, start:stop])
        start = stop
    return products


def outer_sum(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """sum_n w_kn phi_n phi_n^T, packed, for several weights k at once, in bounded memory.

    weights [n, k], vectors [n, size] -> [k, size (size + 1) / 2]
    """
    size = vectors.shape[-1]
    length = size * (size + 1) // 2
    step = max(1, CHUNK_NUMBERS // length)
    total = np.zeros((weights.shape[1], length))
    for start in range(0, len(vectors), step):
        chunk = slice(start, start + step)
        total += weights[chunk].T @ outer(vectors[chunk])
    return total
