"""The last views of each track, for the tests that compare views with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WINDOW = 10  # views


@dataclass(frozen=True, slots=True)
class RecentViews:
    """A shift register, the newest view last; a state like those of the fusers. Empty places are zeros.

    Attributes:
        filled: views present.                              [tracks] int
        log_pmf: evidence of each view.    [tracks, WINDOW, classes] float32
        features: projected features.    [tracks, WINDOW, projected] float32
        origin: camera of each view, its time in nanoseconds.   [tracks, WINDOW, 2] int
    """

    filled: np.ndarray
    log_pmf: np.ndarray
    features: np.ndarray
    origin: np.ndarray

    @property
    def camera(self) -> np.ndarray:
        """[tracks, WINDOW]"""
        return self.origin[..., 0]

    @property
    def stamp(self) -> np.ndarray:
        """[tracks, WINDOW]"""
        return self.origin[..., 1]

    @classmethod
    def zeros(cls, tracks: int, classes: int, projected: int) -> RecentViews:
        return cls(
            np.zeros(tracks, np.int64),
            np.zeros((tracks, WINDOW, classes), np.float32),
            np.zeros((tracks, WINDOW, projected), np.float32),
            np.zeros((tracks, WINDOW, 2), np.int64),
        )

    def pushed(self, log_pmf: np.ndarray, features: np.ndarray, camera: int, stamp: int) -> RecentViews:
        """With one more view of each track, in the order of arrival."""
        filled = np.minimum(self.filled + 1, WINDOW)
        return RecentViews(
            filled,
            _appended(self.log_pmf, log_pmf),
            _appended(self.features, features),
            _appended(self.origin, (camera, stamp)),
        )

    def present(self) -> np.ndarray:
        """Which places hold a view.  [tracks, WINDOW] bool"""
        return np.arange(WINDOW) >= WINDOW - self.filled[:, None]


def _appended(register: np.ndarray, newest: np.ndarray | tuple[int, int]) -> np.ndarray:
    """The register without its oldest entry, with a newest one."""
    shifted = np.empty_like(register)
    shifted[:, :-1] = register[:, 1:]
    shifted[:, -1] = newest
    return shifted
