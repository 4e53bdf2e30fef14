"""Fit fusers of a finished bundle again and choose its default, and its warnings; the networks stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions, Stage, choose_safely, scored
from lla_fusion_ros.lab.calibration.changes import with_changes
from lla_fusion_ros.lab.calibration.collect import views_of_crops
from lla_fusion_ros.lab.calibration.fusers import fit_fuser, score_tracks
from lla_fusion_ros.lab.calibration.warning_tracks import Classify, known_views, seen_by
from lla_fusion_ros.lab.calibration.workload import FUSERS, SCORES, WARNINGS
from lla_fusion_ros.lab.datasets import (
    FITTED_REGIMES,
    REGIMES,
    Regime,
    Splits,
    TrackSet,
    border_of,
    cut,
    recorded_split,
)
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.warnings.fit import fit_warnings_of, known_space

VIEWS = "views of the validation tracks"


class StandIn(NamedTuple):
    """A bundle of the same classes whose networks have tracks kept aside, and what runs these networks."""

    bundle: Bundle
    classify: Classify


def recalibrated(
    bundle: Bundle,
    tracks: TrackSet,
    names: Sequence[str],
    options: CalibrationOptions,
    classify: Classify,
    stage: Stage,
    warnings: bool = False,
    stand_in: StandIn | None = None,
) -> Bundle:
    """The bundle with the fusers of these names fitted on the validation tracks of its own split.

    Without names they stay as they are, with their scores. With `warnings` these are fitted again, too. For
    networks that have seen all tracks a `stand_in` looks at those that were kept aside for it.
    """
    aside, see = stand_in or StandIn(bundle, classify)
    splits = _own_split(aside, tracks)
    if aside.class_names != bundle.class_names:
        raise InputError(f"'{aside.source}' knows other classes than bundle '{bundle.source}'")

    def views(part: TrackSet, seed: int, regimes: tuple[Regime, ...]) -> TrackViews:
        crops = cut(part, aside.input_size, aside.crop_margin, border_of(aside.input_size))
        return views_of_crops(see, crops, regimes, seed)

    stage(VIEWS, 0, 0)
    seeds = [options.seed + 1000 * draw for draw in range(options.draws)]
    validation = joined([views(splits.validation, seed, FITTED_REGIMES) for seed in seeds])
    posterior = aside.posterior()
    fresh = refitted(bundle, validation, names, options, stage, posterior) if names else bundle
    if warnings:
        stage(WARNINGS, 0, 0)
        seen = seen_by(
            see,
            posterior,
            splits.train,
            splits.validation,
            scored(validation),
            aside.input_size,
            aside.crop_margin,
            options.outliers,
            options.background,
            options.seed,
        )
        known = seen.base
        if stand_in:
            trained = recorded_split(tracks, bundle.meta.dataset).train
            known = known_views(classify, trained, bundle.input_size, bundle.crop_margin, options.seed)
        fresh = fresh.with_warnings(fit_warnings_of([seen], known_space(known)))
    if stand_in or not (names and options.test and splits.test.tracks):
        return fresh
    stage(SCORES, 0, 0)
    test = score_tracks(fresh.fuser(), views(splits.test, options.seed + 2, REGIMES))
    return replace(fresh, meta=replace(fresh.meta, scores={**fresh.meta.scores, "test": test}))


def _own_split(bundle: Bundle, tracks: TrackSet) -> Splits:
    """The split that the networks were trained on; refused where no track is left that they have not seen."""
    if bundle.meta.dataset.get("digest") != tracks.digest:
        raise InputError(
            f"bundle '{bundle.source}' was trained on other data than this '{tracks.name}': which tracks are "
            "for validation is not known; for other data use `lla-fusion train --start BUNDLE --epochs 0`"
        )
    splits = recorded_split(tracks, bundle.meta.dataset)
    if bundle.meta.training.get("saw_validation"):
        raise InputError(
            f"the heads of bundle '{bundle.source}' were fitted on its validation tracks, too: repeat the "
            "import; `lla-fusion info` shows its command"
        )
    if not splits.validation.tracks:
        raise InputError(
            f"the networks of bundle '{bundle.source}' have seen all tracks of '{tracks.name}': name with "
            "--stand-in a bundle of networks like them that have not, or repeat its last training with "
            "`lla-fusion train --all-tracks`"
        )
    return splits


def refitted(
    bundle: Bundle,
    validation: TrackViews,
    names: Sequence[str],
    options: CalibrationOptions,
    stage: Stage,
    posterior: EnsemblePosterior | None = None,
) -> Bundle:
    """The same from views and the posterior of the networks that have seen them, None: the bundle's own.

    Scores on test tracks are those of another default and are left out.
    """
    posterior, prior = posterior or bundle.posterior(), bundle.meta.weight_prior
    views = views_of(posterior, validation)
    values = dict(bundle.meta.fusers)
    for done, name in enumerate(names):
        stage(FUSERS, done, len(names))
        values[name] = fit_fuser(name, validation, views, prior)
    chosen = choose_safely(posterior, validation, prior, values, options, stage)
    meta = replace(bundle.meta, fusers=values, default_fuser=chosen.name, reliance=chosen.reliance)
    fuser = make_fuser(chosen.name, posterior, values[chosen.name])
    fresh = with_changes(replace(bundle, meta=meta), validation, fuser)
    kept = {key: value for key, value in bundle.meta.scores.items() if key != "test"}
    scores = {
        **kept,
        "default_fuser": chosen.record,
        "validation": score_tracks(fuser, scored(validation)),
    }
    return replace(fresh, meta=replace(fresh.meta, scores=scores))
