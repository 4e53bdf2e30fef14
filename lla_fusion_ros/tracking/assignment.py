"""From scores of pairs to objects: one to one between two cameras, and abstaining where that is not clear."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

JOIN, STAY = 5.0, -2.0  # ln of the likelihood ratio to join two tracks, and to leave them joined
TIE = 0.01  # the least worth of a joined pair, so that it stays where nothing else claims its tracks
MARGIN = 3.6  # by which every other way to assign the tracks must be worse


def assigned(score: np.ndarray, joined: np.ndarray, ripe: np.ndarray) -> np.ndarray:
    """Which pairs of two cameras' tracks are one object.  3 x [a, b] -> [a, b] bool

    score: ln of the likelihood ratio; joined: as it was; ripe: seen together often enough to be joined. A new
    pair must be better than any other assignment of all tracks by MARGIN; a joined one goes when another is
    better: two objects fused as one cost truth.
    """
    worth = np.maximum(score, np.where(joined, TIE, 0.0))
    rows, columns = linear_sum_assignment(worth, maximize=True)
    best = worth[rows, columns].sum()
    result = np.zeros_like(joined)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if joined[row, column]:
            result[row, column] = score[row, column] >= STAY
        elif ripe[row, column] and score[row, column] >= JOIN:
            result[row, column] = _sure(worth, best, row, column)
    return result


def _sure(worth: np.ndarray, best: float, row: int, column: int) -> bool:
    """Whether all other ways to assign the tracks are worse by MARGIN."""
    rivals = worth[row].sum() + worth[:, column].sum() - 2 * worth[row, column]
    if rivals <= 0:
        return True
    others = worth.copy()
    others[row, column] = 0.0
    return bool(best - others[linear_sum_assignment(others, maximize=True)].sum() >= MARGIN)
