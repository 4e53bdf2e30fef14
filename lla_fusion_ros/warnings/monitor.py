"""Watches tracks while they are fused: state like a fuser's, verdict columns out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.fusion.measure import MeasuredViews, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.rows import add
from lla_fusion_ros.warnings.changepoint import log_likelihood, switch_statistic
from lla_fusion_ros.warnings.disagreement import camera_statistic
from lla_fusion_ros.warnings.model import WarningModel, score_columns
from lla_fusion_ros.warnings.recent import RecentViews
from lla_fusion_ros.warnings.sums import TrackSums

SECOND = 1_000_000_000
LARGEST_PROJECTION = 1e6  # in standard deviations: keeps sums over the window finite


@dataclass(frozen=True, slots=True)
class Findings:
    """What the monitor measured of some tracks; the shares are of ordinary tracks.

    Attributes:
        table: a row for each track, its columns are the properties below.   [t, 5]
    """

    table: np.ndarray

    @classmethod
    def nothing(cls, tracks: int) -> Findings:
        """Of tracks that nobody watches."""
        table = np.zeros((tracks, 5))
        table[:, 2:] = 1.0
        return cls(table)

    @property
    def information(self) -> np.ndarray:
        """Laplace mutual information of the fused prediction, nats.  [t]"""
        return self.table[:, 0]

    @property
    def ood_score(self) -> np.ndarray:
        """Log-odds of being an outlier.  [t]"""
        return self.table[:, 1]

    @property
    def familiarity(self) -> np.ndarray:
        """Share that ever scores as high.  [t]"""
        return self.table[:, 2]

    @property
    def consistency(self) -> np.ndarray:
        """Share that ever shows as strong a sign of an identity switch.  [t]"""
        return self.table[:, 3]

    @property
    def agreement(self) -> np.ndarray:
        """Share that ever shows as strong a sign of disagreeing cameras.  [t]"""
        return self.table[:, 4]

    @property
    def shares(self) -> np.ndarray:
        """The shares in the order of REASONS.  [t, reasons]"""
        return self.table[:, 2:]


class Monitor:
    """The warnings of one bundle. Its state is a pair of array dataclasses, one row per track."""

    def __init__(self, model: WarningModel, posterior: EnsemblePosterior) -> None:
        self.model = model
        self.posterior = posterior
        self._span = round(model.camera_span * SECOND)
        self._projection = model.space.projection_with_bias(posterior.networks)
        self.strangeness(TrackSums.one(zero_views(posterior)))  # factorise now, not with the first frame

    def initial(self, tracks: int) -> tuple[TrackSums, RecentViews]:
        p = self.posterior
        return (
            TrackSums.zeros(tracks, p.networks, p.classes, p.features),
            RecentViews.zeros(tracks, p.classes, self.model.space.projection.shape[1]),
        )

    def update(
        self, sums: TrackSums, recent: RecentViews, views: MeasuredViews, camera: int, stamp: int
    ) -> tuple[TrackSums, RecentViews]:
        """The state after one more view of each track."""
        projected = views.bounded_features.reshape(len(views), len(self._projection)).dot(self._projection)
        near = bounded(projected, LARGEST_PROJECTION)
        pushed = recent.pushed(log_likelihood(views.mean_pmf), near, camera, stamp)
        return add(sums, TrackSums.one(views)), pushed

    def strangeness(self, sums: TrackSums) -> np.ndarray:
        """information, ood_score and familiarity side by side.  [t, 3]"""
        columns, information = score_columns(self.model.space, self.posterior, sums.means())
        found = np.empty((len(information), 3))
        found[:, 0] = information
        found[:, 1] = score = self.model.ood_score(columns)
        found[:, 2] = self.model.ood.share(score)
        return found

    def contradiction(self, recent: RecentViews) -> np.ndarray:
        """consistency and agreement side by side.  [t, 2]"""
        model, classes = self.model, self.posterior.classes
        switch = switch_statistic(recent.views, classes, recent.count, model.feature_weight)
        found = np.empty((len(switch), 2))
        found[:, 0] = model.switch.share(switch)
        if not np.count_nonzero(recent.camera):  # the first camera alone, the most common case
            found[:, 1] = 1.0
            return found
        newest = recent.stamp.max(axis=1, initial=0)
        together = recent.present() & (recent.stamp >= newest[:, None] - self._span)
        found[:, 1] = model.camera.share(
            camera_statistic(recent.views[..., :classes], recent.camera, together)
        )
        return found
