"""Thresholds of the two tests that compare views with each other: identity switch and camera disagreement."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.contradiction import camera_statistic, changes, stale_statistic
from lla_fusion_ros.warnings.model import NEVER, AlarmTable
from lla_fusion_ros.warnings.state import WINDOW, RecentViews

FEATURE_WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
FALSE_ALARM = 0.01  # per track, at which the feature weight is chosen
WITHIN = 5  # views within which a switch should be found
FEWEST = 10  # tracks on which a threshold can be measured at all


def fit_switch(
    evidence: np.ndarray, projected: np.ndarray, space: np.ndarray, tracks: TrackViews, seed: int
) -> tuple[float, AlarmTable, float]:
    """Feature weight, thresholds, and the share of spliced tracks found in WITHIN views at FALSE_ALARM.

    evidence [tracks, steps, classes], projected features [tracks, steps, r] and the number of the feature
    space that projected them [tracks]: two tracks are spliced only where they share it.
    """
    count, longest = evidence.shape[:2]
    if longest < 2 or count < FEWEST:
        return 0.0, NEVER, 0.0
    plain = _statistics(evidence, projected, tracks.steps, 1, longest)  # [steps, tracks, 2, splits]
    partner = _partners(tracks, space, seed, same_class=False)
    before = max(longest // 2, 1)
    after = min(WITHIN, longest - before)
    able = np.flatnonzero((partner >= 0) & (tracks.steps >= before) & (tracks.steps[partner] >= after))
    if len(able) < FEWEST:
        return 0.0, _table(_largest_over_life(plain, 0.0), tracks), 0.0
    spliced, spliced_features = (
        np.concatenate([array[able, :before], array[partner[able], :after]], axis=1)
        for array in (evidence, projected)
    )
    ends = np.full(len(able), before + after)
    switched = _statistics(spliced, spliced_features, ends, before + 1, before + after)
    best = (-1.0, 0.0, NEVER)
    for weight in FEATURE_WEIGHTS:
        table = _table(_largest_over_life(plain, weight), tracks)
        detected = float((_largest_over_life(switched, weight) >= table.threshold(FALSE_ALARM)).mean())
        if detected > best[0] + 1e-9:
            best = (detected, weight, table)
    return best[1], best[2], best[0]


def _table(largest: np.ndarray, tracks: TrackViews) -> AlarmTable:
    lived = np.isfinite(largest)
    return AlarmTable.measure_worst(
        largest[lived], tracks.regime[lived], tracks.source[lived]
    ).at_least_odds()


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
    partner = _partners(tracks, np.zeros(len(tracks.label)), seed, same_class=True)
    rows = np.flatnonzero(partner >= 0)
    if len(rows) < FEWEST:
        return NEVER
    steps = np.minimum(tracks.steps[rows], tracks.steps[partner[rows]])
    pair = np.stack([evidence[rows], evidence[partner[rows]]], axis=2)  # [pairs, steps, 2, classes]
    woven = pair.reshape(len(rows), -1, evidence.shape[2])
    camera = np.broadcast_to(np.arange(woven.shape[1]) % 2, woven.shape[:2])
    life = _camera_life(woven, camera, 2 * steps)
    return AlarmTable.measure_worst(life, tracks.regime[rows], tracks.source[rows]).at_least_odds()


def _statistics(
    evidence: np.ndarray, projected: np.ndarray, steps: np.ndarray, first: int, last: int
) -> np.ndarray:
    """Class and feature change at every split, after each view from `first` to `last` (counted from 1).

    The first is that of the whole window. -inf after a track has ended.  [views, tracks, 2, 1 + splits]
    """
    recent = RecentViews.zeros(len(evidence), evidence.shape[2], projected.shape[2])
    history = np.zeros((len(evidence), evidence.shape[2]))
    out = []
    for step in range(last):
        recent = recent.pushed(evidence[:, step], projected[:, step], 0, 0)
        history += np.exp(evidence[:, step])
        if step + 1 >= first:
            both = np.stack(changes(recent.evidence, recent.features, recent.count), axis=1)
            whole = np.zeros((len(both), 2, 1))
            whole[:, 0, 0] = stale_statistic(recent.evidence, history, recent.count)
            both = np.concatenate([whole, both], axis=2)
            both[steps <= step] = -np.inf
            out.append(both)
    return np.stack(out)


def _largest_over_life(statistics: np.ndarray, weight: float) -> np.ndarray:
    """The largest combined statistic of each track.  [tracks]"""
    combined = statistics[:, :, 0] if weight == 0 else statistics[:, :, 0] + weight * statistics[:, :, 1]
    return combined.max(axis=(0, 2))


def _partners(tracks: TrackViews, group: np.ndarray, seed: int, same_class: bool) -> np.ndarray:
    """For each track another object of its group under the same conditions, of its class or not; -1: none."""
    rng = np.random.default_rng(seed)
    partner = np.full(len(tracks.label), -1)
    for track in np.flatnonzero(tracks.label >= 0):
        fits = (tracks.label == tracks.label[track]) == same_class
        fits &= (tracks.label >= 0) & (tracks.source != tracks.source[track])
        fits &= (tracks.regime == tracks.regime[track]) & (group == group[track])
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
