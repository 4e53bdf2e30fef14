"""The last views of each track, for the tests that compare views with each other."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

WINDOW = 10  # views


@dataclass(frozen=True, slots=True)
class RecentViews:
    """A shift register, the newest view last; a state like those of the fusers. Empty places are zeros.

    Attributes:
        filled: views present.                              [tracks] int
        log_pmf: evidence of each view.    [tracks, WINDOW, classes] float32
        features: projected features.    [tracks, WINDOW, projected] float32
        camera: camera of each view.                [tracks, WINDOW] int
        stamp: its time in nanoseconds.             [tracks, WINDOW] int
    """

    filled: np.ndarray
    log_pmf: np.ndarray
    features: np.ndarray
    camera: np.ndarray
    stamp: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, classes: int, projected: int) -> RecentViews:
        return cls(
            np.zeros(tracks, np.int64),
            np.zeros((tracks, WINDOW, classes), np.float32),
            np.zeros((tracks, WINDOW, projected), np.float32),
            np.zeros((tracks, WINDOW), np.int64),
            np.zeros((tracks, WINDOW), np.int64),
        )

    def pushed(self, log_pmf: np.ndarray, features: np.ndarray, camera: int, stamp: int) -> RecentViews:
        """With one more view of each track, in the order of arrival."""
        newest = {"log_pmf": log_pmf, "features": features, "camera": camera, "stamp": stamp}
        columns = {}
        for f in fields(self)[1:]:
            old = getattr(self, f.name)
            columns[f.name] = shifted = np.empty_like(old)
            shifted[:, :-1] = old[:, 1:]
            shifted[:, -1] = newest[f.name]
        return RecentViews(np.minimum(self.filled + 1, WINDOW), **columns)

    def present(self) -> np.ndarray:
        """Which places hold a view.  [tracks, WINDOW] bool"""
        return np.arange(WINDOW) >= WINDOW - self.filled[:, None]
