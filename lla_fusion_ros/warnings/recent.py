"""The last views of each track, for the tests that compare views with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WINDOW = 10  # views


@dataclass(frozen=True, slots=True)
class RecentViews:
    """A shift register, the newest view last; a state like those of the fusers. Empty places are zeros.

    Attributes:
        count: views so far, also those that have left.     [tracks] int
        views: evidence of each view for the classes, then its projected features.
            [tracks, WINDOW, classes + projected] float32
        origin: camera of each view, its time in nanoseconds.   [tracks, WINDOW, 2] int
    """

    count: np.ndarray
    views: np.ndarray
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
            np.zeros((tracks, WINDOW, classes + projected), np.float32),
            np.zeros((tracks, WINDOW, 2), np.int64),
        )

    def pushed(self, log_pmf: np.ndarray, features: np.ndarray, camera: int, stamp: int) -> RecentViews:
        """With one more view of each track, in the order of arrival."""
        views, origin = _shifted(self.views), _shifted(self.origin)
        classes = log_pmf.shape[1]
        views[:, -1, :classes] = log_pmf
        views[:, -1, classes:] = features
        origin[:, -1] = camera, stamp
        return RecentViews(self.count + 1, views, origin)

    def present(self) -> np.ndarray:
        """Which places hold a view.  [tracks, WINDOW] bool"""
        return np.arange(WINDOW) >= WINDOW - self.count[:, None]


def _shifted(register: np.ndarray) -> np.ndarray:
    """The register without its oldest entry; what will be its newest is not set."""
    shifted = np.empty_like(register)
    shifted[:, :-1] = register[:, 1:]
    return shifted
