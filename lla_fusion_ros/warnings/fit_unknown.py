"""Fit what tells unknown objects from known ones under every condition they are met in.

A logistic regression over the scores: known tracks against background, what detectors deliver by mistake, and
against sign-like outliers. Bad pictures make known objects look odd, too: how much of the score a picture's
quality excuses is fitted on known objects alone, so that the rate of "unknown" holds in each condition. What
is odd in an ordinary picture, but excused by this one, is "cannot tell".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from lla_fusion_ros.fusion.along import flat_views, running_sums
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import take_rows
from lla_fusion_ros.warnings.model import (
    MOST_STANDARD,
    SCORES,
    AlarmTable,
    Detector,
    Excuse,
    FeatureSpace,
    quality_columns,
)
from lla_fusion_ros.warnings.scores import score_table
from lla_fusion_ros.warnings.state import Sums

FITTED_LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50)
MIN_VIEWS = 3  # thresholds are for tracks of at least so many views, the default of the setting `min_views`
RIDGE = 1e-2  # of the logistic regression: per mean log-loss, on standardised columns
CHUNK = 128  # tracks at a time, for memory
EXCUSED = 0.97  # share of known tracks at a quality whose score the excuse covers
ITERATIONS, SMOOTH = 60, 0.05  # of its fit, and the residual below which it is smoothed


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Scores of tracks after several numbers of views.

    Attributes:
        values: [rows, scores]
        quality: mean over the views.  [rows, qualities]
        track, length: number of the track, and of its views.  [rows]
        group: the regime or condition a track was seen under, or the kind of stranger it is.  [rows]
        source: the physical object.  [rows]
    """

    values: np.ndarray
    quality: np.ndarray
    track: np.ndarray
    length: np.ndarray
    group: np.ndarray
    source: np.ndarray

    def take(self, rows: np.ndarray) -> ScoreRows:
        return ScoreRows(*(getattr(self, f.name)[rows] for f in fields(self)))

    def weights(self) -> np.ndarray:
        """Every group weighs the same, and all rows of one the same; they sum to 1.  [rows]"""
        _, of_row, rows = np.unique(self.group, return_inverse=True, return_counts=True)
        return 1.0 / (len(rows) * rows[of_row])

    def alarm(self, score: np.ndarray) -> AlarmTable:
        """The stated rates in each group, of tracks that ever reach a score after MIN_VIEWS views."""
        late = np.flatnonzero(self.length >= min(MIN_VIEWS, int(self.length.max())))
        tracks, first, of_row = np.unique(self.track[late], return_index=True, return_inverse=True)
        largest = np.full(len(tracks), -np.inf)
        np.maximum.at(largest, of_row, score[late])
        return AlarmTable.measure_worst(largest, self.group[late][first], self.source[late][first])


def score_rows(
    parts: Sequence[tuple[FeatureSpace, np.ndarray]], weak: EnsemblePosterior, tracks: TrackViews
) -> ScoreRows:
    """The scores at every fitted length; each part says which tracks are compared with its space."""
    found: list[tuple[np.ndarray, ...]] = []
    lengths = [length for length in FITTED_LENGTHS if length <= tracks.longest]
    for space, rows in parts:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            quality = None if tracks.quality is None else tracks.quality[chunk]
            views = flat_views(weak, tracks.logits[chunk], tracks.features[chunk], quality)
            sums = running_sums(Sums.of(views), len(chunk), tracks.longest, lengths)
            for place, length in enumerate(lengths):
                chosen = np.flatnonzero(tracks.steps[chunk] >= length)
                if len(chosen):
                    means = take_rows(sums, chosen * len(lengths) + place).means()
                    values, _ = score_table(space, weak, means)
                    found.append((values, means.quality, chunk[chosen], np.full(len(chosen), length)))
    scored, pictures, track, seen = (np.concatenate(column) for column in zip(*found, strict=True))
    return ScoreRows(scored, pictures, track, seen, tracks.regime[track], tracks.source[track])


def fit_unknown(
    known: ScoreRows, ordinary: np.ndarray, strange: ScoreRows, unreadable: ScoreRows | None
) -> tuple[Detector, Excuse | None, dict[str, float]]:
    """The detector of unknown objects, what excuses them, and how well each score tells by itself.

    `ordinary` marks the rows of `known` in whose pictures nothing has to be excused.
    """
    weight = known.weights()
    center = weight @ known.values
    scale = np.maximum(np.sqrt(weight @ (known.values - center) ** 2), 1e-6)
    rows = np.concatenate([known.values, strange.values])
    rows = np.clip((rows - center) / scale, -MOST_STANDARD, MOST_STANDARD)
    target = np.repeat([0.0, 1.0], [len(known.values), len(strange.values)])
    intercept, *weights = fit_logistic(rows, target, np.concatenate([weight, strange.weights()]) / 2)
    score = intercept + rows @ np.array(weights)
    inside, outside = score[: len(known.values)], score[len(known.values) :]
    alarm = known.take(ordinary).alarm(inside[ordinary])
    detector = Detector(center, scale, np.array(weights), float(intercept), alarm)
    quality = {
        f"auroc_{name}": auroc(known.values[:, i], strange.values[:, i]) for i, name in enumerate(SCORES)
    }
    excuse = None if unreadable is None else fit_excuse(detector, known, unreadable)
    return detector, excuse, quality | {"auroc_combined": auroc(inside, outside)}


def fit_excuse(detector: Detector, known: ScoreRows, unreadable: ScoreRows) -> Excuse:
    """The score that a share 1 - EXCUSED of known tracks exceeds at each quality: quantile regression."""
    late = [part.take(part.length >= min(MIN_VIEWS, int(part.length.max()))) for part in (known, unreadable)]
    quality = np.concatenate([part.quality for part in late])
    score = np.concatenate([detector(part.values) for part in late])
    sides = len(np.unique(known.group)), len(np.unique(unreadable.group))
    weight = np.concatenate([part.weights() * groups for part, groups in zip(late, sides, strict=True)])
    center, scale = quality.mean(axis=0), np.maximum(quality.std(axis=0), 1e-6)
    design = quality_columns((quality - center) / scale)
    terms = np.zeros(design.shape[1])
    for _ in range(ITERATIONS):  # least squares with the weights that make its optimum that of the quantile
        rest = score - design @ terms
        pull = weight * np.where(rest > 0, EXCUSED, 1 - EXCUSED) / np.maximum(np.abs(rest), SMOOTH)
        curvature = (design.T * pull) @ design + 1e-5 * pull.sum() * np.eye(len(terms))
        terms = np.linalg.solve(curvature, design.T @ (pull * score))
    excused = quality_columns((known.quality - center) / scale) @ terms
    return Excuse(center, scale, terms, known.alarm(detector(known.values) - excused))


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
