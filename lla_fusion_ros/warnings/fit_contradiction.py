"""Thresholds of the test that compares cameras with each other."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.model import NEVER, AlarmTable
from lla_fusion_ros.warnings.scores import camera_statistic
from lla_fusion_ros.warnings.state import WINDOW

FEWEST = 10  # tracks on which a threshold can be measured at all


def fit_camera(evidence: np.ndarray, tracks: TrackViews, seed: int) -> AlarmTable:
    """Thresholds of the camera test: on tracks that several cameras saw, else on pairs of one class.

    Two objects of a class differ at least as much as one object in two cameras: pairs are on the safe side.
    """
    exists = np.arange(evidence.shape[1]) < tracks.steps[:, None]
    several = (np.where(exists, tracks.camera, tracks.camera[:, :1]) != tracks.camera[:, :1]).any(axis=1)
    if several.sum() >= 3 * FEWEST:
        rows = np.flatnonzero(several)
        life = _camera_life(evidence[rows], tracks.camera[rows], tracks.steps[rows])
        return AlarmTable.measure_worst(life, tracks.regime[rows], tracks.source[rows]).at_least_odds()
    partner = _partners(tracks, seed)
    rows = np.flatnonzero(partner >= 0)
    if len(rows) < FEWEST:
        return NEVER
    steps = np.minimum(tracks.steps[rows], tracks.steps[partner[rows]])
    pair = np.stack([evidence[rows], evidence[partner[rows]]], axis=2)  # [pairs, steps, 2, classes]
    woven = pair.reshape(len(rows), -1, evidence.shape[2])
    camera = np.broadcast_to(np.arange(woven.shape[1]) % 2, woven.shape[:2])
    life = _camera_life(woven, camera, 2 * steps)
    return AlarmTable.measure_worst(life, tracks.regime[rows], tracks.source[rows]).at_least_odds()


def _partners(tracks: TrackViews, seed: int) -> np.ndarray:
    """For each track another object of its class under the same conditions; -1: none."""
    rng = np.random.default_rng(seed)
    partner = np.full(len(tracks.label), -1)
    for track in np.flatnonzero(tracks.label >= 0):
        fits = (tracks.label == tracks.label[track]) & (tracks.source != tracks.source[track])
        fits &= tracks.regime == tracks.regime[track]
        if fits.any():
            partner[track] = rng.choice(np.flatnonzero(fits))
    return partner


def _camera_life(evidence: np.ndarray, camera: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The largest camera statistic of each track over its life.  [tracks]"""
    largest = np.zeros(len(evidence))
    for last in range(2, evidence.shape[1] + 1):
        window = slice(max(0, last - WINDOW), last)
        counts = np.broadcast_to((steps >= last)[:, None], camera[:, window].shape)
        largest = np.maximum(largest, camera_statistic(evidence[:, window], camera[:, window], counts))
    return largest
