"""Growing and shrinking Cholesky factors of many small covariance matrices at once.

Every matrix is kept in a fixed frame of n rows; rows not in use are rows of the identity, so that solving
with the whole frame gives zeros there. Axes: t tracks, g groups of rows, m classes, n rows.
"""

from __future__ import annotations

import numpy as np

# Below it a variance is that of a view without features; its inverse would leave the range of numbers.
LEAST_VARIANCE = 1e-200


def forward_solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x with L x = right, by forward substitution.  [..., n, n], [..., n] -> [..., n]"""
    x = np.array(right)
    for i in range(x.shape[-1]):
        x[..., i] -= np.einsum("...k,...k->...", factor[..., i, :i], x[..., :i])
        x[..., i] /= factor[..., i, i]
    return x


def append_row(
    factor: np.ndarray, covariance: np.ndarray, own: np.ndarray, row: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Write one more row into each track's factor, in place.

        l = L^-1 k,   delta = sqrt(s - l^T l)

    A row that depends linearly on the earlier ones (delta^2 <= tolerance * s) tells nothing new: it stays a
    row of the identity and is reported, and so does one of no variance at all.
    factor [t, g, m, n, n], covariance k [t, g, m, n] (zero from `row` on), own s [t, g, m], row [t]
    -> l [t, g, m, n], independent [t, g, m] bool
    """
    solved = forward_solve(factor, covariance)
    squared = own - np.einsum("tgmn,tgmn->tgm", solved, solved)
    independent = squared > np.maximum(tolerance * own, LEAST_VARIANCE)
    solved = np.where(independent[..., None], solved, 0.0)
    delta = np.where(independent, np.sqrt(np.maximum(squared, 0.0)), 1.0)
    tracks = np.arange(len(row))
    factor[tracks, :, :, row, :] = solved
    factor[tracks, :, :, row, row] = delta
    return solved, independent


def drop_first(factor: np.ndarray) -> np.ndarray:
    """The factor without the first row and column, a row of the identity at the end.

    With L = [l_11 0; l L_2] the rest of the covariance is L_2 L_2^T + l l^T: a rank-one update, which
    keeps every diagonal entry positive.   [..., n, n] -> [..., n, n]
    """
    n = factor.shape[-1]
    out = np.zeros_like(factor)
    out[..., n - 1, n - 1] = 1.0
    rest = out[..., : n - 1, : n - 1]
    rest[...] = factor[..., 1:, 1:]
    x = factor[..., 1:, 0].copy()
    for k in range(n - 1):
        diagonal = rest[..., k, k].copy()
        r = np.hypot(diagonal, x[..., k])
        c, s = (r / diagonal)[..., None], (x[..., k] / diagonal)[..., None]
        rest[..., k, k] = r
        below = (rest[..., k + 1 :, k] + s * x[..., k + 1 :]) / c
        rest[..., k + 1 :, k] = below
        x[..., k + 1 :] = c * x[..., k + 1 :] - s * below
    return out
