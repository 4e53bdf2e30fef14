"""What the out-of-distribution scores need of a track: running sums, nothing that grows with its length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews

SIGNS = 4  # entropy, energy, ln feature norm, disagreement between networks: `MeasuredViews.signs`
FIRST_CLASS = 1 + SIGNS  # the column where the sums over classes begin


@dataclass(frozen=True, slots=True)
class TrackSums:
    """Sums over the views of a track; a state like those of the fusers.

    Attributes:
        table: views, and the sums named below, side by side.   [tracks, 1 + signs + 2 classes]
        features: sum of the features of each network.           [tracks, networks, features]
    """

    table: np.ndarray
    features: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, networks: int, classes: int, features: int) -> TrackSums:
        return cls(np.zeros((tracks, FIRST_CLASS + 2 * classes)), np.zeros((tracks, networks, features)))

    @classmethod
    def one(cls, views: MeasuredViews) -> TrackSums:
        """The contribution of one view of each track."""
        middle = FIRST_CLASS + views.classes
        table = np.empty((len(views), middle + views.classes))
        table[:, 0] = 1.0
        table[:, 1:FIRST_CLASS] = np.stack(
            [views.entropy, views.energy, views.log_norm, views.disagreement], axis=1
        )
        table[:, FIRST_CLASS:middle] = views.mean_pmf
        table[:, middle:] = views.mean_centred
        return cls(table, views.bounded_features)

    @property
    def count(self) -> np.ndarray:
        """Views.  [tracks]"""
        return self.table[:, 0]

    @property
    def signs(self) -> np.ndarray:
        """Of `MeasuredViews.signs`.  [tracks, SIGNS]"""
        return self.table[:, 1:FIRST_CLASS]

    @property
    def pmf(self) -> np.ndarray:
        """Of the mean pmf of the networks.  [tracks, classes]"""
        return self.table[:, FIRST_CLASS : self._middle]

    @property
    def logits(self) -> np.ndarray:
        """Of the mean-centred logits, mean over networks.  [tracks, classes]"""
        return self.table[:, self._middle :]

    @property
    def _middle(self) -> int:
        return (FIRST_CLASS + self.table.shape[1]) // 2

    def means(self) -> TrackSums:
        """The same divided by the number of views; `count` stays."""
        share = 1.0 / np.maximum(self.table[:, :1], 1.0)
        means = TrackSums(self.table * share, self.features * share[..., None])
        means.table[:, 0] = self.table[:, 0]
        return means
