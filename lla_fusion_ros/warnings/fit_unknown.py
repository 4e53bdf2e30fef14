"""Fit what tells unknown objects from known ones under every condition they are met in.

A logistic regression over the scores: known tracks against what detectors deliver by mistake (background) and
against sign-like outliers. Bad pictures make known objects look odd, too: how much of the score a picture's
quality excuses is fitted on known objects alone, so that the rate of "unknown" holds in each condition. What
is odd in an ordinary picture, but excused by this one, is "cannot tell".
Axes: rows are tracks after several numbers of views.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lla_fusion_ros.fusion.along import flat_views, running_sums
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.rows import take_rows
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.alarm import AlarmTable
from lla_fusion_ros.warnings.model import MOST_STANDARD, SCORES, Excuse, FeatureSpace, quality_columns
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
        quality: mean over the views; zeros where it was not measured.  [rows, qualities]
        track, length: number of the track, and of its views.  [rows]
        group: the condition a track was seen under, or the kind of stranger it is.  [tracks]
        source: the physical object.  [tracks]
    """

    values: np.ndarray
    quality: np.ndarray
    track: np.ndarray
    length: np.ndarray
    group: np.ndarray
    source: np.ndarray

    def weights(self) -> np.ndarray:
        """Every group weighs the same, and all rows of one the same; they sum to 1.  [rows]"""
        _, of_row, rows = np.unique(self.group[self.track], return_inverse=True, return_counts=True)
        return 1.0 / (len(rows) * rows[of_row])


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
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return ScoreRows(columns[0], columns[1], columns[2], columns[3], tracks.regime, tracks.source)


def fit_unknown(
    known: ScoreRows, strange: ScoreRows, unreadable: ScoreRows | None, ordinary: Collection[str]
) -> dict[str, Any]:
    """The fields of `WarningModel` that tell unknown objects and bad pictures.

    `ordinary` names the groups of `known` in which no bad picture has to be excused.
    """
    center = known.weights() @ known.values
    scale = np.maximum(np.sqrt(known.weights() @ (known.values - center) ** 2), 1e-6)

    def standard(rows: ScoreRows) -> np.ndarray:
        return np.clip((rows.values - center) / scale, -MOST_STANDARD, MOST_STANDARD)

    inside, outside = standard(known), standard(strange)
    intercept, coefficients = fit_logistic(inside, outside, known.weights(), strange.weights())
    score = intercept + inside @ coefficients
    every, all_scores = known, score
    if unreadable is not None:
        every = _joined(known, unreadable)
        all_scores = np.concatenate([score, intercept + standard(unreadable) @ coefficients])
    excuse = fit_excuse(every, all_scores) if every.quality.any() else Excuse.nothing()
    quality = {f"auroc_{name}": auroc(inside[:, i], outside[:, i]) for i, name in enumerate(SCORES)}
    return {
        "center": center,
        "scale": scale,
        "coefficients": coefficients,
        "intercept": intercept,
        "ood": _thresholds(every, all_scores - excuse(every.quality), np.unique(every.group)),
        "odd": _thresholds(known, score, ordinary),
        "excuse": excuse,
        "quality": quality | {"auroc_combined": auroc(score, intercept + outside @ coefficients)},
    }


def fit_excuse(rows: ScoreRows, score: np.ndarray) -> Excuse:
    """The score that a share 1 - EXCUSED of known tracks exceeds at each quality: quantile regression."""
    late = rows.length >= min(MIN_VIEWS, int(rows.length.max()))
    quality, score, weight = rows.quality[late], score[late], rows.weights()[late]
    center, scale = quality.mean(axis=0), np.maximum(quality.std(axis=0), 1e-6)
    design = quality_columns((quality - center) / scale)
    terms = np.zeros(design.shape[1])
    for _ in range(ITERATIONS):  # least squares with the weights that make its optimum that of the quantile
        rest = score - design @ terms
        pull = weight * np.where(rest > 0, EXCUSED, 1 - EXCUSED) / np.maximum(np.abs(rest), SMOOTH)
        curvature = (design.T * pull) @ design + 1e-5 * pull.sum() * np.eye(len(terms))
        terms = np.linalg.solve(curvature, design.T @ (pull * score))
    return Excuse(center, scale, terms)


def _joined(first: ScoreRows, second: ScoreRows) -> ScoreRows:
    return ScoreRows(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.quality, second.quality]),
        np.concatenate([first.track, second.track + len(first.group)]),
        np.concatenate([first.length, second.length]),
        np.concatenate([first.group, second.group]),
        np.concatenate([first.source, second.source]),
    )


def _thresholds(known: ScoreRows, score: np.ndarray, groups: Collection[str]) -> AlarmTable:
    """The stated rates in each of these groups, of tracks that ever reach a score after MIN_VIEWS views."""
    late = known.length >= min(MIN_VIEWS, int(known.length.max()))
    largest = np.full(len(known.group), -np.inf)
    np.maximum.at(largest, known.track[late], score[late])
    lived = np.isfinite(largest) & np.isin(known.group, list(groups))
    return AlarmTable.measure_worst(largest[lived], known.group[lived], known.source[lived])


def auroc(known: np.ndarray, strange: np.ndarray) -> float:
    """Probability that an outlier scores higher than a known track (ties count half)."""
    order = np.sort(known)
    below = np.searchsorted(order, strange, side="left") + np.searchsorted(order, strange, side="right")
    return float(below.mean() / (2 * len(known)))


def fit_logistic(
    negative: np.ndarray,
    positive: np.ndarray,
    negative_weight: np.ndarray | None = None,
    positive_weight: np.ndarray | None = None,
    iterations: int = 30,
) -> tuple[float, np.ndarray]:
    """Logistic regression by Newton's method: positive rows against negative ones, both weighing the same.

    The weights of each side sum to 1; without them all rows of a side weigh the same.
    [n, columns], [p, columns] -> intercept, coefficients [columns]
    """
    rows = np.concatenate([negative, positive])
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    target = np.repeat([0.0, 1.0], [len(negative), len(positive)])
    weight = 0.5 * np.concatenate(
        [
            np.full(len(side), 1.0 / len(side)) if own is None else own
            for side, own in ((negative, negative_weight), (positive, positive_weight))
        ]
    )
    ridge = RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    beta = np.zeros(design.shape[1])
    for _ in range(iterations):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
        gradient = design.T @ (weight * (chance - target)) + ridge @ beta
        curvature = (
            (design.T * (weight * chance * (1.0 - chance))) @ design + ridge + 1e-9 * np.eye(len(beta))
        )
        step = np.linalg.solve(curvature, gradient)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    return float(beta[0]), beta[1:]
