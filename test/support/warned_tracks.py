"""Tracks of the feature world through the warnings, without fusion."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.warnings.flow import TrackWarnings
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.result import Scores
from support.feature_world import FeatureTracks, FeatureWorld

SECOND = 1_000_000_000
GOING_ON = FusionSettings(restart_on_switch=False)


def scores_of_frame(
    warnings: TrackWarnings,
    world: FeatureWorld,
    tracks: FeatureTracks,
    step: int,
    camera: int = 0,
    count: int = 1,
) -> Scores:
    """One view of every track; `count` views were seen with it."""
    rows = np.arange(len(tracks.label))
    views = measured(tracks.views(step), world.posterior)
    seen = np.full(len(rows), count)
    scores, _ = warnings.update(rows, views, camera, (step + 1) * SECOND // 10, seen, GOING_ON)
    return scores


def scores_along(world: FeatureWorld, model: WarningModel, tracks: FeatureTracks) -> list[Scores]:
    """After each view."""
    warnings = TrackWarnings(model, world.posterior, len(tracks.label))
    return [
        scores_of_frame(warnings, world, tracks, step, int(tracks.camera[0, step]), step + 1)
        for step in range(tracks.logits.shape[1])
    ]
