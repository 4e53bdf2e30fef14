"""Fit the warning model: known tracks, outliers and bad pictures in, coefficients and thresholds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.warnings.fit_contradiction import fit_camera
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.fit_unknown import CHUNK, ScoreRows, fit_unknown, score_rows
from lla_fusion_ros.warnings.model import FeatureSpace, WarningModel
from lla_fusion_ros.warnings.scores import evidence, weak_posterior

CAMERA_SPAN = 1.0  # seconds
FOLDS = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """What networks say of the tracks that warnings are fitted on; see `fit_warnings`."""

    posterior: EnsemblePosterior
    inside: TrackViews
    outside: TrackViews
    reference: TrackViews | None = None
    conditions: TrackViews | None = None
    unreadable: TrackViews | None = None
    distant: TrackViews | None = None

    @property
    def base(self) -> TrackViews:
        return self.inside if self.reference is None else self.reference


def fit_warnings(
    posterior: EnsemblePosterior,
    inside: TrackViews,
    outside: TrackViews,
    reference: TrackViews | None = None,
    conditions: TrackViews | None = None,
    unreadable: TrackViews | None = None,
    distant: TrackViews | None = None,
    seed: int = 0,
) -> WarningModel:
    """The warning model of a bundle.

    `inside` are validation tracks of known classes under the regimes, `conditions` the same objects under
    further conditions they are met in; `outside` are background and synthetic outliers (never the held-out
    classes). Thresholds come from known tracks alone: the false-alarm rate is the share of them that ever
    raise the warning, limited in each regime and condition (`TrackViews.regime`), too. `unreadable` are known
    objects in pictures too bad to tell anything, `distant` ones far away and half hidden: they
    tell what small boxes add to the score that is usual. `reference` are the tracks whose features count as
    known, such as the training tracks; without them it is `inside`, and each of its tracks is then measured
    against a space made without its own object, so that the rates stay honest.
    """
    seen = Seen(posterior, inside, outside, reference, conditions, unreadable, distant)
    return fit_warnings_of([seen], known_space(seen.base), seed)


def known_space(tracks: TrackViews) -> FeatureSpace:
    return fit_space(tracks.features, tracks.steps, tracks.label)


def fit_warnings_of(seen: Sequence[Seen], space: FeatureSpace, seed: int = 0) -> WarningModel:
    """The same from several ensembles, each with tracks of its own and measured by its own features.

    `space` is where known objects lie for the networks that will be warned with.
    """
    inside = joined([each.inside for each in seen])
    strangers = sum(len(each.outside) for each in seen)
    if len(inside) < 10 or strangers < 10:
        raise InputError(
            f"warnings need at least 10 validation tracks and 10 outliers, "
            f"there are {len(inside)} and {strangers}"
        )
    known, strange, bad, far, said = [], [], [], [], []
    for each in seen:
        weak, own = weak_posterior(each.posterior), known_space(each.base)
        met = each.inside if each.conditions is None else joined([each.inside, each.conditions])
        known.append(_known_rows(each, own, weak, met, seed))
        strange.append(score_rows([(own, np.arange(len(each.outside)))], weak, each.outside))
        if each.unreadable is not None:
            bad.append(score_rows([(own, np.arange(len(each.unreadable)))], weak, each.unreadable))
        if each.distant is not None:
            far.append(_known_rows(each, own, weak, each.distant, seed))
        said.append(_said(each.posterior, each.inside, inside.longest))
    unknown, usual, quality = fit_unknown(
        ScoreRows.joined(known),
        ScoreRows.joined(strange),
        ScoreRows.joined(bad) if bad else None,
        ScoreRows.joined(far) if far else None,
    )
    return WarningModel(
        space=space,
        unknown=unknown,
        usual=usual,
        camera_span=CAMERA_SPAN,
        camera=fit_camera(np.concatenate(said), inside, seed),
        quality=quality,
    )


def _known_rows(
    seen: Seen, own: FeatureSpace, weak: EnsemblePosterior, tracks: TrackViews, seed: int
) -> ScoreRows:
    """Scores of known objects, each by a space that it had no part in."""
    parts = [(own, np.arange(len(tracks)))]
    if seen.reference is None:
        parts = _crossed(seen.base, tracks, seed)
    return score_rows(parts, weak, tracks)


def _crossed(base: TrackViews, tracks: TrackViews, seed: int) -> list[tuple[FeatureSpace, np.ndarray]]:
    """Feature spaces of parts of `base`, each with the tracks whose objects had no part in it."""
    objects, of_base = np.unique(base.source, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(objects)) % FOLDS
    parts = []
    for part in range(FOLDS):
        rest = fold[of_base] != part
        space = fit_space(base.features[rest], base.steps[rest], base.label[rest])
        parts.append((space, np.flatnonzero(np.isin(tracks.source, objects[fold == part]))))
    return parts


def _said(posterior: EnsemblePosterior, tracks: TrackViews, steps: int) -> np.ndarray:
    """Evidence of every view.  [tracks, steps, classes]"""
    said = np.zeros((len(tracks), steps, posterior.classes), np.float32)
    for start in range(0, len(tracks), CHUNK):
        chunk = tracks.take(slice(start, start + CHUNK))
        views = views_of(posterior, chunk)
        shape = (len(chunk), tracks.longest, -1)
        said[start : start + CHUNK, : tracks.longest] = evidence(views.mean_pmf).reshape(shape)
    return said
