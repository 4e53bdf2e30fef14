"""Fit the warning model: known tracks and synthetic outliers in, coefficients and thresholds out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.along import flat_views, running_sums
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import take_rows
from lla_fusion_ros.warnings.contradiction import evidence
from lla_fusion_ros.warnings.fit_contradiction import fit_camera, fit_switch
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.model import MOST_STANDARD, SCORES, AlarmTable, FeatureSpace, WarningModel
from lla_fusion_ros.warnings.scores import score_table, weak_posterior
from lla_fusion_ros.warnings.state import Sums

FITTED_LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50)
MIN_VIEWS = 3  # thresholds are for tracks of at least so many views, the default of the setting `min_views`
CAMERA_SPAN = 1.0  # seconds
FOLDS = 3
RIDGE = 1e-2  # of the logistic regression: per mean log-loss, on standardised columns
CHUNK = 128  # tracks at a time, for memory


def fit_warnings(
    posterior: EnsemblePosterior,
    inside: TrackViews,
    outside: TrackViews,
    reference: TrackViews | None = None,
    seed: int = 0,
) -> WarningModel:
    """The warning model of a bundle.

    `inside` are validation tracks of known classes, under all conditions they may be met in; `outside` are
    synthetic outliers (never the held-out classes). Thresholds come from `inside` alone: the false-alarm rate
    is the share of its tracks that ever raise the warning. `reference` are the tracks whose features count as
    known, such as the training tracks; without them it is `inside`, and each of its tracks is then
    measured against a space made without its own object, so that the rates stay honest.
    """
    if len(inside.label) < 10 or len(outside.label) < 10:
        raise InputError(
            f"warnings need at least 10 validation tracks and 10 outliers, "
            f"there are {len(inside.label)} and {len(outside.label)}"
        )
    base = inside if reference is None else reference
    space = fit_space(base.features, base.steps, base.label, seed)
    parts = _crossed(inside, seed) if reference is None else [(space, np.arange(len(inside.label)))]
    weak = weak_posterior(posterior)
    known = _joined([_columns(part, weak, inside, rows) for part, rows in parts])
    strange = _columns(space, weak, outside, np.arange(len(outside.label)))
    center, scale = known.values.mean(axis=0), np.maximum(known.values.std(axis=0), 1e-6)
    standard = [
        np.clip((part.values - center) / scale, -MOST_STANDARD, MOST_STANDARD) for part in (known, strange)
    ]
    intercept, coefficients = fit_logistic(*standard)
    scores = [intercept + part @ coefficients for part in standard]
    late = known.length >= min(MIN_VIEWS, int(known.length.max()))
    largest = _largest(scores[0][late], known.track[late], len(inside.label))
    lived = np.isfinite(largest)
    ood = AlarmTable.measure(largest[lived], inside.source[lived])
    said, projected, of_space = _views_of(posterior, inside, parts)
    feature_weight, switch, detected = fit_switch(said, projected, of_space, inside, seed)
    quality = {f"auroc_{name}": _auroc(standard[0][:, i], standard[1][:, i]) for i, name in enumerate(SCORES)}
    return WarningModel(
        space=space,
        center=center,
        scale=scale,
        coefficients=coefficients,
        intercept=intercept,
        feature_weight=feature_weight,
        camera_span=CAMERA_SPAN,
        ood=ood,
        switch=switch,
        camera=fit_camera(said, inside, seed),
        quality=quality | {"auroc_combined": _auroc(*scores), "switch_detected_5": detected},
    )


def _crossed(tracks: TrackViews, seed: int) -> list[tuple[FeatureSpace, np.ndarray]]:
    """Feature spaces, each with the tracks whose objects had no part in it."""
    objects, of_track = np.unique(tracks.source, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(objects))[of_track] % FOLDS
    parts = []
    for part in range(FOLDS):
        rest = fold != part
        space = fit_space(tracks.features[rest], tracks.steps[rest], tracks.label[rest], seed)
        parts.append((space, np.flatnonzero(~rest)))
    return parts


@dataclass(frozen=True, slots=True)
class _Columns:
    """Scores of tracks after several numbers of views: values [rows, scores], track and length [rows]."""

    values: np.ndarray
    track: np.ndarray
    length: np.ndarray


def _joined(parts: list[_Columns]) -> _Columns:
    return _Columns(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.track for part in parts]),
        np.concatenate([part.length for part in parts]),
    )


def _columns(space: FeatureSpace, weak: EnsemblePosterior, tracks: TrackViews, rows: np.ndarray) -> _Columns:
    """The scores of some tracks at every fitted length they reach."""
    longest = tracks.longest
    out = []
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        views = flat_views(weak, tracks.logits[chunk], tracks.features[chunk])
        lengths = [length for length in FITTED_LENGTHS if length <= longest]
        sums = running_sums(Sums.of(views), len(chunk), longest, lengths)
        for place, length in enumerate(lengths):
            chosen = np.flatnonzero(tracks.steps[chunk] >= length)
            if len(chosen):
                means = take_rows(sums, chosen * len(lengths) + place).means()
                values, _ = score_table(space, weak, means)
                out.append(_Columns(values, chunk[chosen], np.full(len(chosen), length)))
    return _joined(out)


def _views_of(
    posterior: EnsemblePosterior, tracks: TrackViews, parts: list[tuple[FeatureSpace, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Evidence and projected features of every view, and the part that each track belongs to.

    [tracks, steps, classes], [tracks, steps, projected], [tracks]
    """
    count, steps = tracks.logits.shape[:2]
    said = np.zeros((count, steps, posterior.classes), np.float32)
    width = max(space.projection.shape[1] for space, _ in parts)
    projected = np.zeros((count, steps, width), np.float32)
    of_space = np.zeros(count, int)
    for number, (space, rows) in enumerate(parts):
        of_space[rows] = number
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            views = flat_views(posterior, tracks.logits[chunk], tracks.features[chunk])
            shape = (len(chunk), steps, -1)
            said[chunk] = evidence(views.mean_pmf).reshape(shape)
            found = space.project(views.bounded_features)
            projected[chunk, :, : found.shape[1]] = found.reshape(shape)
    return said, projected, of_space


def _largest(values: np.ndarray, track: np.ndarray, tracks: int) -> np.ndarray:
    """The largest value of each track; -inf where it has none.  [tracks]"""
    largest = np.full(tracks, -np.inf)
    np.maximum.at(largest, track, values)
    return largest


def _auroc(known: np.ndarray, strange: np.ndarray) -> float:
    """Probability that an outlier scores higher than a known track (ties count half)."""
    order = np.sort(known)
    below = np.searchsorted(order, strange, side="left") + np.searchsorted(order, strange, side="right")
    return float(below.mean() / (2 * len(known)))


def fit_logistic(
    negative: np.ndarray, positive: np.ndarray, iterations: int = 30
) -> tuple[float, np.ndarray]:
    """Logistic regression by Newton's method: positive rows against negative ones, both weighing the same.

    [n, columns], [p, columns] -> intercept, coefficients [columns]
    """
    rows = np.concatenate([negative, positive])
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    target = np.repeat([0.0, 1.0], [len(negative), len(positive)])
    weight = np.repeat([0.5 / len(negative), 0.5 / len(positive)], [len(negative), len(positive)])
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
