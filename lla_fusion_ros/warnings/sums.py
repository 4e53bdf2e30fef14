"""What the out-of-distribution scores need of a track: running sums, nothing that grows with its length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews


@dataclass(frozen=True, slots=True)
class TrackSums:
    """Sums over the views of a track; a state like those of the fusers.

    Attributes:
        count: views.                                                              [tracks]
        pmf: of the mean pmf of the networks.                              [tracks, classes]
        logits: of the mean-centred logits, mean over networks.            [tracks, classes]
        features: of the features of each network.              [tracks, networks, features]
        signs: of entropy, energy, disagreement between networks, ln feature norm. [tracks, 4]
    """

    count: np.ndarray
    pmf: np.ndarray
    logits: np.ndarray
    features: np.ndarray
    signs: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, networks: int, classes: int, features: int) -> TrackSums:
        return cls(
            np.zeros(tracks),
            np.zeros((tracks, classes)),
            np.zeros((tracks, classes)),
            np.zeros((tracks, networks, features)),
            np.zeros((tracks, 4)),
        )

    @classmethod
    def one(cls, views: MeasuredViews) -> TrackSums:
        """The contribution of one view of each track."""
        signs = np.empty((len(views), 4))
        signs[:, 0], signs[:, 1] = views.entropy, views.energy
        signs[:, 2], signs[:, 3] = views.disagreement, views.feature_norm
        return cls(np.ones(len(views)), views.mean_pmf, views.mean_centred, views.bounded_features, signs)

    def means(self) -> TrackSums:
        """The same divided by the number of views; `count` stays."""
        share = 1.0 / np.maximum(self.count, 1.0)
        return TrackSums(
            self.count,
            self.pmf * share[:, None],
            self.logits * share[:, None],
            self.features * share[:, None, None],
            self.signs * share[:, None],
        )
