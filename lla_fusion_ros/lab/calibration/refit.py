"""Fit fusers of a finished bundle again and choose its default, and its warnings; the networks stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions, Stage, choose_safely
from lla_fusion_ros.lab.calibration.collect import views_of_crops
from lla_fusion_ros.lab.calibration.fusers import fit_fuser, score_tracks
from lla_fusion_ros.lab.calibration.warning_tracks import seen_by
from lla_fusion_ros.lab.calibration.workload import FUSERS, SCORES, WARNINGS
from lla_fusion_ros.lab.datasets import TrackSet, border_of, cut, recorded_split
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import fit_warnings_of, known_space

VIEWS = "views of the validation tracks"


def recalibrated(
    bundle: Bundle,
    tracks: TrackSet,
    names: Sequence[str],
    options: CalibrationOptions,
    classify: Callable[[np.ndarray], Views],
    stage: Stage,
    warnings: bool = False,
) -> Bundle:
    """The bundle with the fusers of these names fitted on the validation tracks of its own split.

    Without names they stay as they are, with their scores. With `warnings` these are fitted again, too.
    """
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
            f"the networks of bundle '{bundle.source}' have seen all tracks of '{tracks.name}': they can be "
            "calibrated on none; repeat its last training with `lla-fusion train --all-tracks`"
        )

    def views(part: TrackSet, seed: int) -> TrackViews:
        crops = cut(part, bundle.input_size, bundle.crop_margin, border_of(bundle.input_size))
        return views_of_crops(classify, crops, seed=seed)

    stage(VIEWS, 0, 0)
    seeds = [options.seed + 1000 * draw for draw in range(options.draws)]
    validation = joined([views(splits.validation, seed) for seed in seeds])
    fresh = refitted(bundle, validation, names, options, stage) if names else bundle
    if warnings:
        stage(WARNINGS, 0, 0)
        size, margin = bundle.input_size, bundle.crop_margin
        seen = seen_by(
            classify,
            bundle.posterior(),
            splits.train,
            splits.validation,
            validation,
            size,
            margin,
            options.outliers,
            options.background,
            options.seed,
        )
        fresh = fresh.with_warnings(fit_warnings_of([seen], known_space(seen.base)))
    if not (names and options.test and splits.test.tracks):
        return fresh
    stage(SCORES, 0, 0)
    test = score_tracks(fresh.fuser(), views(splits.test, options.seed + 2))
    return replace(fresh, meta=replace(fresh.meta, scores={**fresh.meta.scores, "test": test}))


def refitted(
    bundle: Bundle, validation: TrackViews, names: Sequence[str], options: CalibrationOptions, stage: Stage
) -> Bundle:
    """The same from views; scores on test tracks are those of another default and are left out."""
    posterior, prior = bundle.posterior(), bundle.meta.weight_prior
    views = views_of(posterior, validation)
    values = dict(bundle.meta.fusers)
    for done, name in enumerate(names):
        stage(FUSERS, done, len(names))
        values[name] = fit_fuser(name, validation, views, prior)
    chosen = choose_safely(posterior, validation, prior, values, options, stage)
    meta = replace(bundle.meta, fusers=values, default_fuser=chosen.name, reliance=chosen.reliance)
    fresh = replace(bundle, meta=meta)
    kept = {key: value for key, value in bundle.meta.scores.items() if key != "test"}
    scores = {**kept, "default_fuser": chosen.record, "validation": score_tracks(fresh.fuser(), validation)}
    return replace(fresh, meta=replace(fresh.meta, scores=scores))
