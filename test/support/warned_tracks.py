"""Tracks of the feature world through the warnings, without fusion."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.hypotheses import Belief
from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.flow import TrackWarnings
from lla_fusion_ros.warnings.model import USUAL_CHANGE, WarningModel
from lla_fusion_ros.warnings.result import Scores
from support.feature_world import FeatureWorld

SECOND = 1_000_000_000
GOING_ON = FusionSettings(restart_on_switch=False)


def scores_of_frame(
    warnings: TrackWarnings,
    world: FeatureWorld,
    tracks: TrackViews,
    step: int,
    camera: int = 0,
    count: int = 1,
) -> Scores:
    """One view of every track that never looks changed; `count` views were seen with it."""
    rows = np.arange(len(tracks.label))
    views = measured(tracks.views_at(step), world.posterior)
    seen = np.full(len(rows), count)
    no, pmf = np.zeros(len(rows), bool), views.mean_pmf
    belief = Belief(pmf, pmf, np.full(len(rows), -np.inf), no, no, no, np.zeros(len(rows), np.int64))
    scores, _ = warnings.update(rows, views, camera, (step + 1) * SECOND // 10, seen, GOING_ON, belief)
    return scores


def scores_along(world: FeatureWorld, model: WarningModel, tracks: TrackViews) -> list[Scores]:
    """After each view."""
    warnings = TrackWarnings(model, USUAL_CHANGE, world.posterior, len(tracks.label))
    return [
        scores_of_frame(warnings, world, tracks, step, int(tracks.camera[0, step]), step + 1)
        for step in range(tracks.logits.shape[1])
    ]
