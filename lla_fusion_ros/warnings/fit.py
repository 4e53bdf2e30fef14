"""Fit the warning model: known tracks and strangers in, coefficients and thresholds out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.warnings.contradiction import evidence
from lla_fusion_ros.warnings.fit_contradiction import fit_camera, fit_switch
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.fit_unknown import CHUNK, ScoreRows, fit_unknown, score_rows
from lla_fusion_ros.warnings.model import FeatureSpace, WarningModel
from lla_fusion_ros.warnings.scores import weak_posterior

CAMERA_SPAN = 1.0  # seconds
FOLDS = 3

Parts = list[tuple[FeatureSpace, np.ndarray]]  # a space, and the rows of the tracks compared with it


def fit_warnings(
    posterior: EnsemblePosterior,
    inside: TrackViews,
    outside: TrackViews,
    reference: TrackViews | None = None,
    seed: int = 0,
    conditions: TrackViews | None = None,
    unreadable: TrackViews | None = None,
) -> WarningModel:
    """The warning model of a bundle.

    `inside` are validation tracks of known classes under the regimes, `conditions` the same objects under
    further conditions, named by `regime`: the rates of unknown objects and bad pictures hold in each.
    `outside` are background and synthetic outliers (never the held-out classes), named by `regime`, too;
    `unreadable` are known objects in pictures too bad to recognise anything.
    `reference` are the tracks whose features count as known, such as the training tracks; without them it is
    `inside`, and each of its tracks is then measured against a space made without its own object, so that the
    rates stay honest.
    """
    if len(inside.label) < 10 or len(outside.label) < 10:
        raise InputError(
            f"warnings need at least 10 validation tracks and 10 outliers, "
            f"there are {len(inside.label)} and {len(outside.label)}"
        )
    base = inside if reference is None else reference
    space = fit_space(base.features, base.steps, base.label, seed)
    known = inside if conditions is None else joined([inside, conditions])
    parts = _crossed(inside, known, seed) if reference is None else _whole(space, known)
    weak = weak_posterior(posterior)
    unknown = fit_unknown(
        score_rows(parts, weak, known),
        score_rows(_whole(space, outside), weak, outside),
        None if unreadable is None else score_rows(_whole(space, unreadable), weak, unreadable),
        np.unique(inside.regime).tolist(),
    )
    own = [(part, rows[rows < len(inside)]) for part, rows in parts]
    said, projected, of_space = _views_of(posterior, inside, own)
    feature_weight, switch, detected = fit_switch(said, projected, of_space, inside, seed)
    unknown["quality"]["switch_detected_5"] = detected
    return WarningModel(
        space=space,
        feature_weight=feature_weight,
        camera_span=CAMERA_SPAN,
        switch=switch,
        camera=fit_camera(said, inside, seed),
        **unknown,
    )


def refit_unknown(
    model: WarningModel,
    posterior: EnsemblePosterior,
    known: TrackViews,
    outside: TrackViews,
    unreadable: TrackViews | None,
    ordinary: Collection[str],
) -> WarningModel:
    """The model with other answers to "is it known?" and "can one tell?"; all else stays as it is.

    `ordinary` names the conditions of `known` in which no bad picture has to be excused.
    """
    weak = weak_posterior(posterior)

    def scored(tracks: TrackViews) -> ScoreRows:
        return score_rows(_whole(model.space, tracks), weak, tracks)

    fitted = fit_unknown(
        scored(known), scored(outside), None if unreadable is None else scored(unreadable), ordinary
    )
    return replace(model, **{**fitted, "quality": {**model.quality, **fitted["quality"]}})


def _whole(space: FeatureSpace, tracks: TrackViews) -> Parts:
    return [(space, np.arange(len(tracks)))]


def _crossed(tracks: TrackViews, known: TrackViews, seed: int) -> Parts:
    """Feature spaces of `tracks`, each with the rows of `known` whose objects had no part in it."""
    objects = np.unique(tracks.source)
    fold_of = dict(
        zip(objects.tolist(), np.random.default_rng(seed).permutation(len(objects)) % FOLDS, strict=True)
    )
    fold = np.array([fold_of[source] for source in tracks.source.tolist()])
    known_fold = np.array([fold_of[source] for source in known.source.tolist()])
    parts = []
    for part in range(FOLDS):
        rest = fold != part
        space = fit_space(tracks.features[rest], tracks.steps[rest], tracks.label[rest], seed)
        parts.append((space, np.flatnonzero(known_fold == part)))
    return parts


def _views_of(
    posterior: EnsemblePosterior, tracks: TrackViews, parts: Parts
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
