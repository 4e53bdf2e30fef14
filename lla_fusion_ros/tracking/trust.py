"""How well two cameras fit each other, over all their tracks: a camera that is turned fits another by chance.

Tracks that fit count for two cameras, tracks that both should show and that fit nothing of the other's count
against them. Two cameras are joined once what they show together is clear, and no more when it is not.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.tracking.assignment import JOIN, STAY

FIRST = 4.0  # seconds times ln of the likelihood ratio beyond JOIN that the fits must sum up to
AGAINST = 4.0  # what a second of a misfit takes away
HALF_LIFE = 10.0  # seconds in which there was something to see
DOUBT = 1.0  # seconds of misfits before the user is asked to look


class Trust:
    """Of every two cameras, by their numbers: sums of fits' worth, and of seconds of fits and of misfits."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], np.ndarray] = {}

    def clear(self) -> None:
        self._sums.clear()

    def tell(self, pair: tuple[int, int], fits: np.ndarray, misfits: int, seconds: float) -> bool:
        """Scores of tracks that fit, how many fit nothing, for how long; whether the two may be joined."""
        sums = self._sums.setdefault(pair, np.zeros(3))
        if len(fits) or misfits:
            sums *= 0.5 ** (seconds / HALF_LIFE)
            sums += seconds * np.array([np.maximum(fits - JOIN, 0).sum(), len(fits), misfits])
        return bool(sums[0] >= FIRST + AGAINST * sums[2])

    def doubts(self, camera: int) -> dict[int, tuple[float, float]]:
        """Other cameras that a camera does not fit: seconds of fits and of misfits."""
        return {
            sum(pair) - camera: (fits, misfits)
            for pair, (worth, fits, misfits) in self._sums.items()
            if camera in pair and misfits >= DOUBT and worth < FIRST + AGAINST * misfits
        }


def alone(score: np.ndarray, ripe: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which tracks of two cameras clearly fit none of the other's.  2 x [a, b] -> [a] bool, [b] bool"""
    hope = np.where(ripe | np.isneginf(score), score, np.inf)  # what is not ripe may still fit
    first, second = ((hope.max(axis=axis) < STAY) & ripe.any(axis=axis) for axis in (1, 0))
    return first, second
