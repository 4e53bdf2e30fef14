"""What a fuser says of whole tracks: one pass gives the prediction after every frame, so for every L."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.fusion.hypotheses import ChangeRates, published_along
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.track_views import TrackViews

# Tracks at a time. Of a view's numbers, fusers and warnings make dozens of arrays in double precision, and
# `wls` holds a factor per class and network: some hundred megabytes for so many tracks.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class Fused:
    """One fuser on many tracks.

    Attributes:
        pmf: after each frame.                            [tracks, steps, classes]
        steps: how many of the steps of a track are real. [tracks]
    """

    pmf: np.ndarray
    steps: np.ndarray

    def after(self, length: int) -> np.ndarray:
        """The pmf after L frames; a shorter track counts with all it has.   [tracks, classes]"""
        return self.pmf[np.arange(len(self.pmf)), np.minimum(length, self.steps) - 1]

    def shown(self, length: int) -> list[np.ndarray]:
        """The class a user would see after each of the first L frames, track by track."""
        top = self.pmf.argmax(axis=2)
        return [row[: min(length, count)] for row, count in zip(top, self.steps, strict=True)]


def fuse_tracks(
    fuser: Fuser, tracks: TrackViews, views: MeasuredViews, rates: ChangeRates | None = None
) -> Fused:
    """`views` are those of `tracks`, flat and measured once for all fusers (fusion/along.py)."""
    steps = tracks.logits.shape[1]
    size = steps * CHUNK
    parts = [
        published_along(fuser, views.take(slice(start, start + size)), steps, rates)
        for start in range(0, len(views), size)
    ]
    return Fused(np.concatenate(parts), tracks.steps)
