"""What a fuser says of whole tracks: one pass gives the prediction after every frame, so for every L."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.along import pmf_along
from lla_fusion_ros.fusion.base import Fuser, SumFuser
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


def fuse_tracks(fuser: Fuser, tracks: TrackViews, views: MeasuredViews) -> Fused:
    """`views` are those of `tracks`, flat and measured once for all fusers (fusion/along.py)."""
    steps = tracks.logits.shape[1]
    if isinstance(fuser, SumFuser):
        return Fused(pmf_along(fuser, views, steps), tracks.steps)
    rows = steps * CHUNK
    parts = [
        pmf_along(fuser, views.take(slice(start, start + rows)), steps)
        for start in range(0, len(views), rows)
    ]
    return Fused(np.concatenate(parts), tracks.steps)


@dataclass(frozen=True, slots=True)
class Survivor:
    """One track, frame by frame.

    Attributes:
        alone, fused: every frame by itself, and fused.   pmf [1, steps, classes]
        label: the right class.
        frame: index of the frame that is wrong.
        confidence: how sure that frame is of the wrong class.
    """

    alone: Fused
    fused: Fused
    label: int
    frame: int
    confidence: float


def surviving_track(alone: Fused, fused: Fused, labels: np.ndarray, sure: float = 0.9) -> Survivor | None:
    """The track with the most confident wrong frame after which fusion still shows the right class.

    The frame must be wrong with a probability of `sure` or more, and fusion right there and up to the end.
    """
    wrong = alone.pmf.argmax(axis=2) != labels[:, None]
    right = fused.pmf.argmax(axis=2) == labels[:, None]
    steps = np.arange(alone.pmf.shape[1])
    real = (steps >= 3) & (steps < alone.steps[:, None] - 1)  # something before it, and something after
    kept = np.flip(np.logical_and.accumulate(np.flip(right | (steps >= alone.steps[:, None]), 1), axis=1), 1)
    confidence = np.where(wrong & kept & real, alone.pmf.max(axis=2), 0.0)
    if confidence.max() < sure:
        return None
    track = int(confidence.max(axis=1).argmax())
    frame = int(confidence[track].argmax())
    return Survivor(
        _one(alone, track), _one(fused, track), int(labels[track]), frame, float(confidence[track, frame])
    )


def _one(fused: Fused, track: int) -> Fused:
    """A copy, so that the other tracks can be forgotten."""
    return Fused(fused.pmf[track : track + 1].copy(), fused.steps[track : track + 1].copy())
