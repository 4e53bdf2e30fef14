"""Run the networks over crops once and keep what they say, track by track."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.lab.datasets import REGIMES, CropSet, Regime, TrackSet, border_of, cut, degrade
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.types.views import Views

LONGEST = 50  # views of a track that calibration looks at


def views_of_tracks(
    classify: Callable[[np.ndarray], Views],
    tracks: TrackSet,
    size: int,
    margin: float,
    regimes: tuple[Regime, ...] = REGIMES,
    seed: int = 0,
    longest: int = LONGEST,
) -> TrackViews:
    """Every track under every regime, at most its first `longest` frames."""
    return views_of_crops(classify, cut(tracks, size, margin, border_of(size)), regimes, seed, longest)


def views_of_crops(
    classify: Callable[[np.ndarray], Views],
    crops: CropSet,
    regimes: tuple[Regime, ...] = REGIMES,
    seed: int = 0,
    longest: int = LONGEST,
    batch: int = 256,
) -> TrackViews:
    """The same for crops that were cut with a border."""
    parts = []
    for regime in regimes:
        degraded = degrade(crops, regime, seed)
        keep = degraded.frame < longest
        views = _in_batches(classify, degraded.images, np.flatnonzero(keep), batch)
        parts.append(by_track(views, degraded, keep, regime))
    return joined(parts)


def by_track(views: Views, crops: CropSet, keep: np.ndarray, regime: str) -> TrackViews:
    """Views of crops (those that `keep` marks) put into one row per track, in the order of their frames."""
    track, frame = crops.track[keep], crops.frame[keep]
    order = np.lexsort((frame, track))
    source, start, steps = np.unique(track[order], return_index=True, return_counts=True)
    row = np.repeat(np.arange(len(source)), steps)
    step = np.arange(len(order)) - np.repeat(start, steps)
    shape = (len(source), int(steps.max()))
    logits = np.zeros((*shape, *views.logits.shape[1:]), np.float32)
    features = np.zeros((*shape, *views.features.shape[1:]), np.float32)
    camera = np.zeros(shape, np.int64)
    logits[row, step], features[row, step] = views.logits[order], views.features[order]
    camera[row, step] = crops.camera[keep][order]
    size = np.full(shape, np.nan, np.float32)
    size[row, step] = crops.box_side[keep][order]
    label = crops.label[keep][order][start]
    quality = None
    if views.quality is not None:
        quality = np.zeros((*shape, views.quality.shape[1]), np.float32)
        quality[row, step] = views.quality[order]
    regimes = np.full(len(source), regime)
    return TrackViews(logits, features, camera, steps, label, regimes, source, quality, size)


def _in_batches(
    classify: Callable[[np.ndarray], Views], images: np.ndarray, rows: np.ndarray, batch: int
) -> Views:
    parts = [classify(images[rows[start : start + batch]]) for start in range(0, len(rows), batch)]
    measured = [part.quality for part in parts if part.quality is not None]
    return Views(
        np.concatenate([part.logits for part in parts]),
        np.concatenate([part.features for part in parts]),
        np.concatenate(measured) if len(measured) == len(parts) else None,
    )
