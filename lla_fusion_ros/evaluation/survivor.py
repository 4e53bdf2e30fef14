"""The track that a figure shows: a confident mistake in one frame that fusion survives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.evaluation.fused import Fused


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
