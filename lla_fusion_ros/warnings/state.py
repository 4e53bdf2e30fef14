"""What the warnings remember of each track; nothing of it grows with the track's length.

Each class is a dataclass of arrays whose first axis is `tracks` (`lla_fusion_ros.types.views`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.views import QUALITIES
from lla_fusion_ros.warnings.model import DISTRUST
from lla_fusion_ros.warnings.result import REASONS

SMALLEST_SIDE = 1.0  # pixels: no box counts as smaller
WINDOW = 10  # views that are compared with each other


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted sums over all views of a track.

    Attributes:
        count: views.                                                [tracks]
        weight: sum of their weights u = e^(-DISTRUST H).            [tracks]
        entropy, energy, log_norm, disagreement: of `MeasuredViews`. [tracks]
        pmf: mean pmf of the networks.                               [tracks, classes]
        logits: mean-centred logits, mean over networks.             [tracks, classes]
        features: of each network, with the 1 for the bias.          [tracks, networks, D]
        quality: of the crops; NaN where that of any is not known.   [tracks, qualities]
        log_size: ln of the box's side in image pixels; NaN alike.   [tracks]
    """

    count: np.ndarray
    weight: np.ndarray
    entropy: np.ndarray
    energy: np.ndarray
    log_norm: np.ndarray
    disagreement: np.ndarray
    pmf: np.ndarray
    logits: np.ndarray
    features: np.ndarray
    quality: np.ndarray
    log_size: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, networks: int, classes: int, features: int) -> Sums:
        sums = (classes,), (classes,), (networks, features), (len(QUALITIES),), ()
        shapes = (*((),) * 6, *sums)
        return cls(*(np.zeros((tracks, *shape)) for shape in shapes))

    @classmethod
    def of(cls, views: MeasuredViews) -> Sums:
        """One view of each track."""
        unknown = np.full((len(views), len(QUALITIES)), np.nan)
        size = unknown[:, 0] if views.size is None else np.maximum(views.size, SMALLEST_SIDE)
        summed = (
            views.entropy,
            views.energy,
            views.log_norm,
            views.disagreement,
            views.mean_pmf,
            views.mean_centred,
            views.bounded_features,
            unknown if views.quality is None else views.quality.astype(np.float64),
            np.log(size, dtype=np.float64),
        )
        weight = np.exp(-DISTRUST * views.entropy)
        return cls(np.ones(len(views)), weight, *(_times(weight, each) for each in summed))

    def means(self) -> Sums:
        """The weighted means; `count` and `weight` stay."""
        summed = [getattr(self, field.name) for field in fields(self)[2:]]
        share = 1.0 / np.where(self.weight > 0, self.weight, 1.0)
        return Sums(self.count, self.weight, *(_times(share, each) for each in summed))


def _times(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Each row times its factor.  [tracks], [tracks, ...]"""
    return values * factor.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, slots=True)
class RecentViews:
    """The last WINDOW views of a track in the order of arrival, the newest last; empty places are zeros.

    Attributes:
        count: views so far, also those that have left.             [tracks] int
        evidence: ln of the pmf, floored (`contradiction.evidence`). [tracks, WINDOW, classes] float32
        camera, stamp: where each comes from, in nanoseconds.       [tracks, WINDOW] int
    """

    count: np.ndarray
    evidence: np.ndarray
    camera: np.ndarray
    stamp: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, classes: int) -> RecentViews:
        return cls(
            np.zeros(tracks, np.int64),
            np.zeros((tracks, WINDOW, classes), np.float32),
            np.zeros((tracks, WINDOW), np.int64),
            np.zeros((tracks, WINDOW), np.int64),
        )

    def pushed(self, evidence: np.ndarray, camera: int, stamp: int) -> RecentViews:
        """With one more view of each track.  evidence [tracks, classes]"""
        return RecentViews(
            self.count + 1,
            _pushed(self.evidence, evidence),
            _pushed(self.camera, camera),
            _pushed(self.stamp, stamp),
        )

    def merged(self, other: RecentViews) -> RecentViews:
        """The newest views of both, of tracks that are one object."""
        stamp = np.concatenate([self.stamp, other.stamp], axis=1)
        there = np.concatenate([self.present, other.present], axis=1)
        newest = np.argsort(np.where(there, stamp, -1), axis=1, kind="stable")[:, -WINDOW:]

        def both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            all_views = np.concatenate([first, second], axis=1)
            places = newest.reshape(*newest.shape, *[1] * (all_views.ndim - 2))
            return np.take_along_axis(all_views, places, axis=1)

        return RecentViews(
            self.count + other.count,
            both(self.evidence, other.evidence),
            both(self.camera, other.camera),
            both(self.stamp, other.stamp),
        )

    @property
    def present(self) -> np.ndarray:
        """Which places hold a view.  [tracks, WINDOW] bool"""
        return np.arange(WINDOW) >= WINDOW - self.count[:, None]


def _pushed(register: np.ndarray, newest: np.ndarray | int) -> np.ndarray:
    """Without its oldest entry, with a new one at the end.  [tracks, WINDOW, ...]"""
    shifted = np.empty_like(register)
    shifted[:, :-1] = register[:, 1:]
    shifted[:, -1] = newest
    return shifted


@dataclass(frozen=True, slots=True)
class Known:
    """Whether each track shows a known object, as of the last time it was asked.

    Attributes:
        views: how many the track had then.  [tracks] int
        mutual_information, ood_score, p_known, p_readable: as in `result.Verdict`.  [tracks]
    """

    views: np.ndarray
    mutual_information: np.ndarray
    ood_score: np.ndarray
    p_known: np.ndarray
    p_readable: np.ndarray

    @classmethod
    def nothing(cls, tracks: int) -> Known:
        """Of tracks that nobody asked about."""
        none, ordinary = np.zeros(tracks), np.ones(tracks)
        return cls(np.zeros(tracks, np.int64), none, none.copy(), ordinary, ordinary.copy())


@dataclass(frozen=True, slots=True)
class Standing:
    """What was decided with the last view of each track.

    Attributes:
        warned: which of REASONS hold.                            [tracks, reasons] bool
        until: stamp up to which an identity switch stays visible. [tracks] int
    """

    warned: np.ndarray
    until: np.ndarray

    @classmethod
    def nothing(cls, tracks: int) -> Standing:
        """Of tracks that nothing was said of."""
        return cls(np.zeros((tracks, len(REASONS)), bool), np.zeros(tracks, np.int64))
