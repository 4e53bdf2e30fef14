"""Symmetric matrices as packed vectors: half the numbers, and a quadratic form becomes a dot product.

phi^T S phi = <vech(phi phi^T), w(S)>, where vech takes the lower triangle and w doubles what is off the diagonal.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=16)
def triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle, the order of every packed vector.  2 x [size (size + 1) / 2]"""
    rows, columns = np.tril_indices(size)
    rows.flags.writeable = columns.flags.writeable = False
    return rows, columns


def pack(matrices: np.ndarray) -> np.ndarray:
    """The lower triangle of [..., size, size] as [..., size (size + 1) / 2]."""
    rows, columns = triangle(matrices.shape[-1])
    return matrices[..., rows, columns]


def unpack(packed: np.ndarray, size: int) -> np.ndarray:
    """The symmetric [..., size, size] whose lower triangle is `packed`."""
    rows, columns = triangle(size)
    matrices = np.empty((*packed.shape[:-1], size, size), packed.dtype)
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


def outer(vectors: np.ndarray) -> np.ndarray:
    """vech(phi phi^T) of every [..., size] vector: [..., size (size + 1) / 2]."""
    size = vectors.shape[-1]
    products = np.empty((*vectors.shape[:-1], size * (size + 1) // 2), vectors.dtype)
    start = 0
    for row in range(size):  # row by row, contiguous: three times as fast as fancy indexing of both factors
        np.multiply(
            vectors[..., row : row + 1], vectors[..., : row + 1], out=products[..., start : start + row + 1]
        )
        start += row + 1
    return products


def form_weights(matrices: np.ndarray) -> np.ndarray:
    """w(S) such that outer(phi) @ w(S) = phi^T S phi; off-diagonal entries counted twice."""
    rows, columns = triangle(matrices.shape[-1])
    return pack(matrices) * np.where(rows == columns, 1.0, 2.0)
