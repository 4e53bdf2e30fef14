"""What is known of every pair of tracks, summed over time: how likely they are one object.

Tracks have slots, and a pair is the place [slot of the first, slot of the second] in every matrix; the first
is that of the camera that was named earlier.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.tracking.pairs import MEASURES, evidence, log_ratio

SECOND = 1_000_000_000
HALF_LIFE = 2.5  # seconds; so that a wrong join is undone soon
CLASS_SHARE, CLASS_MOST = 0.5, 2.0  # what the classes may say, tempered: misread signs are not excluded
HOPELESS = -25.0  # ln of the likelihood ratio of a pair that need not be looked at in every frame
REST = SECOND // 2  # ... but after so long


class PairScores:
    """Attributes:
    score: ln of the likelihood ratio of one object to two.
    seen, since: stamps of the last and the first evidence; 0 where there is none.
    joined: whether they are taken for one object.
    """

    def __init__(self) -> None:
        self._sums = np.zeros((0, 0, MEASURES))
        self.score = np.zeros((0, 0))
        self.seen = np.zeros((0, 0), np.int64)
        self.since = np.zeros((0, 0), np.int64)
        self.joined = np.zeros((0, 0), bool)
        self._rests = np.zeros((0, 0), np.int64)  # stamp up to which a pair is not looked at
        self._pmf: np.ndarray | None = None  # what each track's own views say.  [slots, classes]

    def grow(self, slots: int) -> None:
        """Room for so many tracks."""
        extra = slots - len(self.score)
        for name in ("_sums", "score", "seen", "since", "joined", "_rests"):
            old = getattr(self, name)
            setattr(self, name, np.pad(old, [(0, extra)] * 2 + [(0, 0)] * (old.ndim - 2)))
        if self._pmf is not None:
            self._pmf = np.pad(self._pmf, [(0, extra), (0, 0)], constant_values=1 / self._pmf.shape[1])

    def forget(self, slot: int) -> None:
        """Everything about the pairs of a track."""
        for matrix in self._matrices():
            matrix[slot] = matrix[:, slot] = 0
        if self._pmf is not None:
            self._pmf[slot] = 1 / self._pmf.shape[1]

    def clear(self) -> None:
        """Everything about all pairs; what the tracks' own views say stays."""
        for matrix in self._matrices():
            matrix[:] = 0

    def tell_classes(self, slots: list[int], pmf: np.ndarray) -> None:
        """What the own views of these tracks say.  [slots, classes]"""
        if self._pmf is None or self._pmf.shape[1] != pmf.shape[1]:
            self._pmf = np.full((len(self.score), pmf.shape[1]), 1 / pmf.shape[1])
        self._pmf[slots] = pmf

    def worth_a_look(self, first: np.ndarray, second: np.ndarray, stamp: int) -> tuple[np.ndarray, ...]:
        """Positions in `first` and `second` of the pairs that are not clearly two objects."""
        return np.nonzero(self._rests[np.ix_(first, second)] <= stamp)

    def add(
        self,
        slots: tuple[np.ndarray, np.ndarray],
        sights: tuple[np.ndarray, np.ndarray],
        stamps: np.ndarray,
    ) -> None:
        """One moment of some pairs. Sums fade with time, and grow at most as with ten frames a second.

        Args:
            slots: of the first and the second tracks, no pair twice.     [pairs]
            sights: what was seen of them, see `pairs`.                   [pairs, 16]
        """
        seconds = np.minimum((stamps - self.seen[slots]) / SECOND, 60.0)
        new = evidence(*sights)
        sums = self._sums[slots].T * 0.5 ** (seconds / HALF_LIFE) + new * np.minimum(1, 10 * seconds)
        self._sums[slots] = sums.T
        score = log_ratio(sums)
        if self._pmf is not None:
            alike = np.einsum("pc,pc->p", self._pmf[slots[0]], self._pmf[slots[1]]) * self._pmf.shape[1]
            score += np.clip(CLASS_SHARE * np.log(np.maximum(alike, 1e-9)), -CLASS_MOST, CLASS_MOST)
        self.score[slots] = score
        self.seen[slots] = stamps
        since = self.since[slots]
        self.since[slots] = np.where(since > 0, since, stamps)
        self._rests[slots] = np.where((score < HOPELESS) & ~self.joined[slots], stamps + REST, 0)

    def _matrices(self) -> tuple[np.ndarray, ...]:
        return self._sums, self.score, self.seen, self.since, self.joined, self._rests
