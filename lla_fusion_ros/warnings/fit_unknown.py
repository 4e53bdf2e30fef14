"""Fit what tells unknown objects from known ones, and pictures that nobody can read from ordinary ones.

Both are logistic regressions whose thresholds hold in *every* condition that known objects are met in. The
first compares scores of tracks: known ones against background, what detectors deliver by mistake, and
against sign-like outliers. The second compares the quality of crops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.along import flat_views, running_sums
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import take_rows
from lla_fusion_ros.warnings.model import MOST_STANDARD, SCORES, AlarmTable, Detector, FeatureSpace
from lla_fusion_ros.warnings.scores import score_table
from lla_fusion_ros.warnings.state import Sums

FITTED_LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50)
MIN_VIEWS = 3  # thresholds are for tracks of at least so many views, the default of the setting `min_views`
RIDGE = 1e-2  # of the logistic regression: per mean log-loss, on standardised columns
CHUNK = 128  # tracks at a time, for memory


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Scores of tracks after several numbers of views.

    Attributes:
        values: [rows, scores]
        track, length: number of the track, and of its views.  [rows]
    """

    values: np.ndarray
    track: np.ndarray
    length: np.ndarray


def score_rows(
    parts: list[tuple[FeatureSpace, np.ndarray]], weak: EnsemblePosterior, tracks: TrackViews
) -> ScoreRows:
    """The scores at every fitted length; each part says which tracks are compared with its space."""
    found: list[tuple[np.ndarray, ...]] = []
    lengths = [length for length in FITTED_LENGTHS if length <= tracks.longest]
    for space, rows in parts:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            views = flat_views(weak, tracks.logits[chunk], tracks.features[chunk])
            sums = running_sums(Sums.of(views), len(chunk), tracks.longest, lengths)
            for place, length in enumerate(lengths):
                chosen = np.flatnonzero(tracks.steps[chunk] >= length)
                if len(chosen):
                    means = take_rows(sums, chosen * len(lengths) + place).means()
                    values, _ = score_table(space, weak, means)
                    found.append((values, chunk[chosen], np.full(len(chosen), length)))
    return ScoreRows(*(np.concatenate(column) for column in zip(*found, strict=True)))


def fit_unknown(
    known: ScoreRows, known_tracks: TrackViews, strange: ScoreRows, strange_tracks: TrackViews
) -> tuple[Detector, dict[str, float]]:
    """The detector of unknown objects, and how well each score tells the strange tracks by itself."""
    known_weight = weights(known_tracks.regime[known.track])
    strange_weight = weights(strange_tracks.regime[strange.track])
    late = known.length >= min(MIN_VIEWS, int(known.length.max()))

    def alarm(score: np.ndarray) -> AlarmTable:
        largest = np.full(len(known_tracks), -np.inf)
        np.maximum.at(largest, known.track[late], score[late])
        return _worst(largest, known_tracks)

    detector = fit_detector(known.values, known_weight, strange.values, strange_weight, alarm)
    quality = {
        f"auroc_{name}": auroc(known.values[:, i], strange.values[:, i]) for i, name in enumerate(SCORES)
    }
    return detector, quality | {"auroc_combined": auroc(detector(known.values), detector(strange.values))}


def fit_unreadable(known: TrackViews, unreadable: TrackViews) -> Detector:
    """The detector of pictures nobody can read; its thresholds are for the clearest of MIN_VIEWS crops."""
    assert known.quality is not None and unreadable.quality is not None
    groups = [np.repeat(tracks.regime, tracks.steps) for tracks in (known, unreadable)]
    clear, bad = known.quality[known.real], unreadable.quality[unreadable.real]

    def alarm(score: np.ndarray) -> AlarmTable:
        every = np.full(known.real.shape, np.inf)
        every[known.real] = score
        clearest = every[:, : min(MIN_VIEWS, known.longest)].min(axis=1)
        enough = known.steps >= min(MIN_VIEWS, known.longest)
        return _worst(np.where(enough, clearest, -np.inf), known)

    return fit_detector(clear, weights(groups[0]), bad, weights(groups[1]), alarm)


def _worst(largest: np.ndarray, tracks: TrackViews) -> AlarmTable:
    """The stated rates in each condition; tracks that were never judged, -inf, do not count."""
    lived = np.isfinite(largest)
    return AlarmTable.measure_worst(largest[lived], tracks.regime[lived], tracks.source[lived])


def weights(group: np.ndarray) -> np.ndarray:
    """Every group weighs the same, and all rows of one the same; they sum to 1.  [rows]"""
    _, of_row, rows = np.unique(group, return_inverse=True, return_counts=True)
    return 1.0 / (len(rows) * rows[of_row])


def fit_detector(
    known: np.ndarray,
    known_weight: np.ndarray,
    strange: np.ndarray,
    strange_weight: np.ndarray,
    alarm: Callable[[np.ndarray], AlarmTable],
) -> Detector:
    """Strange rows against known ones; `alarm` makes thresholds of the logits of the known rows.

    [n, columns], [n], [p, columns], [p]; the weights of each side sum to 1
    """
    center = known_weight @ known
    scale = np.maximum(np.sqrt(known_weight @ (known - center) ** 2), 1e-6)
    rows = np.clip((np.concatenate([known, strange]) - center) / scale, -MOST_STANDARD, MOST_STANDARD)
    target = np.repeat([0.0, 1.0], [len(known), len(strange)])
    beta = fit_logistic(rows, target, np.concatenate([known_weight, strange_weight]) / 2)
    score = beta[0] + rows[: len(known)] @ beta[1:]
    return Detector(center, scale, beta[1:], float(beta[0]), alarm(score))


def fit_logistic(
    rows: np.ndarray, target: np.ndarray, weight: np.ndarray, iterations: int = 30
) -> np.ndarray:
    """Logistic regression by Newton's method; the intercept comes first.

    [n, columns], target 0 or 1 [n], weight summing to 1 [n] -> [1 + columns]
    """
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    ridge = RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    beta = np.zeros(design.shape[1])
    for _ in range(iterations):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
        gradient = design.T @ (weight * (chance - target)) + ridge @ beta
        curvature = (design.T * (weight * chance * (1.0 - chance))) @ design + ridge
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(beta)), gradient)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def auroc(known: np.ndarray, strange: np.ndarray) -> float:
    """Probability that an outlier scores higher than a known track (ties count half)."""
    order = np.sort(known)
    below = np.searchsorted(order, strange, side="left") + np.searchsorted(order, strange, side="right")
    return float(below.mean() / (2 * len(known)))
