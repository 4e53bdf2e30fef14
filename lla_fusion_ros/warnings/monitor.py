"""Watches tracks while they are fused: state like a fuser's, verdict columns out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import add
from lla_fusion_ros.fusion.measure import MeasuredViews, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.warnings.changepoint import log_likelihood, switch_statistic
from lla_fusion_ros.warnings.disagreement import camera_statistic
from lla_fusion_ros.warnings.model import WarningModel, score_columns
from lla_fusion_ros.warnings.recent import RecentViews
from lla_fusion_ros.warnings.sums import TrackSums

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Findings:
    """What the monitor measured of some tracks, one entry each; the shares are of ordinary tracks.

    Attributes:
        information: Laplace mutual information of the fused prediction, nats.   [t]
        ood_score, familiarity: log-odds of being an outlier; share that ever scores as high.   [t]
        consistency: share that ever shows as strong a sign of an identity switch.   [t]
        agreement: share that ever shows as strong a sign of disagreeing cameras.   [t]
    """

    information: np.ndarray
    ood_score: np.ndarray
    familiarity: np.ndarray
    consistency: np.ndarray
    agreement: np.ndarray


class Monitor:
    """The warnings of one bundle. Its state is a pair of array dataclasses, one row per track."""

    def __init__(self, model: WarningModel, posterior: EnsemblePosterior) -> None:
        self.model = model
        self.posterior = posterior
        self._span = round(model.camera_span * SECOND)
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
        projected = self.model.space.project(views.bounded_features)
        pushed = recent.pushed(log_likelihood(views.mean_pmf), np.clip(projected, -1e6, 1e6), camera, stamp)
        return add(sums, TrackSums.one(views)), pushed

    def strangeness(self, sums: TrackSums) -> np.ndarray:
        """information, ood_score and familiarity side by side.  [t, 3]"""
        columns, information = score_columns(self.model.space, self.posterior, sums.means())
        score = self.model.ood_score(columns)
        return np.stack([information, score, self.model.ood.share(score)], axis=1)

    def contradiction(self, recent: RecentViews) -> tuple[np.ndarray, np.ndarray]:
        """consistency and agreement.  2 x [t]"""
        model = self.model
        switch = switch_statistic(recent.log_pmf, recent.features, recent.filled, model.feature_weight)
        consistency = model.switch.share(switch)
        if not recent.camera.any():  # the first camera alone, the most common case
            return consistency, np.ones(len(consistency))
        newest = recent.stamp.max(axis=1, initial=0)
        together = recent.present() & (recent.stamp >= newest[:, None] - self._span)
        cameras = camera_statistic(recent.log_pmf, recent.camera, together)
        return consistency, model.camera.share(cameras)
