"""From trained networks to a bundle: temperatures, posterior, fusers, default, warnings, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, BundleMeta, make_bundle
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.lab.calibration.collect import views_of_crops
from lla_fusion_ros.lab.calibration.fusers import (
    CANDIDATES,
    FOLDS,
    choose_default,
    fit_fuser,
    fit_weight_prior,
    safe_candidates,
    score_tracks,
)
from lla_fusion_ros.lab.calibration.network_calibration import (
    Networks,
    fit_posterior,
    fit_temperatures,
    scaled,
)
from lla_fusion_ros.lab.calibration.warning_tracks import warning_tracks
from lla_fusion_ros.lab.calibration.workload import (
    CHOICE,
    FUSERS,
    POSTERIOR,
    SCORES,
    TEMPERATURES,
    WARNINGS,
    StageWork,
    Workload,
    workload,
)
from lla_fusion_ros.lab.datasets import REGIMES, CropSet, Splits, border_of, cut, degrade
from lla_fusion_ros.lab.datasets.background import background_tracks
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.tune import Tuning, tune
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.model import WarningModel

Stage = Callable[[str, int, int], None]  # name, so much of it done, of how much
FEWEST_TRACKS = 10  # what `fit_warnings` asks for
_TUNING_VIEWS = 1500  # more of them choose the same prior, and take longer


@dataclass(frozen=True, slots=True)
class Trained:
    """Trained networks and what they were told.

    Attributes:
        settings: goes into the bundle's `training` record.
        trunks, plugins: as in the bundle's metadata.
    """

    networks: Networks
    architecture: dict[str, Any]
    normalisation: dict[str, Any]
    size: int
    margin: float
    prior_precision: float
    settings: dict[str, Any]
    trunks: tuple[int, ...] = ()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Attributes:
    cross: also fit the covariance between networks; C^2 blocks make the file larger.
    outliers: number of synthetic outlier tracks the warning model is fitted on, and of background ones.
    background: folder of natural images for background tracks; scenery and textures are drawn without one.
    draws: how often the validation tracks are degraded; more draws steady the fuser's fits.
    test: also score the test tracks.
    candidates: fusers that the default is chosen from.
    seed: of degradations, outliers and folds.
    """

    cross: bool = False
    outliers: int = 360
    background: str | None = None
    draws: int = 2
    test: bool = True
    candidates: tuple[str, ...] = CANDIDATES
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(f"calibration needs at least one draw of the degradations, not {self.draws}")
        if self.background is not None:
            background_tracks(1, 1, folder=self.background)  # hours of training come before they are needed


def calibrated_bundle(
    trained: Trained, splits: Splits, dataset: dict[str, Any], options: CalibrationOptions, stage: Stage
) -> Bundle:
    """Fit everything that comes after training, on validation tracks under all regimes, and score it."""
    border = border_of(trained.size)
    validation = cut(splits.validation, trained.size, trained.margin, border)
    expected = calibration_work(splits, len(trained.networks), options).stages
    classify = _counted(trained.networks.classify, TEMPERATURES, expected, stage)
    views = joined(
        [
            views_of_crops(classify, validation, seed=options.seed + 1000 * draw)
            for draw in range(options.draws)
        ]
    )
    temperatures = fit_temperatures(views)
    trained.networks.scale(temperatures)
    views = scaled(views, temperatures)
    stage(POSTERIOR, 0, 0)
    posterior, tuning = _posterior(trained, splits, views, options)
    values, weight_prior = _fuser_values(posterior, views, stage)
    chosen = choose_safely(posterior, views, weight_prior, values, options, stage)
    classify = _counted(trained.networks.classify, WARNINGS, expected, stage)
    warnings = warnings_for(classify, posterior, splits, validation, views, trained.margin, options)
    arrays, record = warnings.to_parts()
    meta = BundleMeta(
        architecture=trained.architecture,
        networks=len(trained.networks),
        class_names=splits.train.class_names,
        input_size=trained.size,
        crop_margin=trained.margin,
        normalisation=trained.normalisation,
        prior_precision=posterior.prior_precision,
        posterior_temperature=posterior.temperature,
        default_fuser=chosen.name,
        reliance=chosen.reliance,
        softmax_temperature=tuple(temperatures),
        trunks=trained.trunks,
        changing=tuple(name for name in splits.train.changing if name in splits.train.class_names),
        plugins=trained.plugins,
        weight_prior=weight_prior,
        fusers=values,
        warnings=record,
        dataset=dataset,
        training=trained.settings,
        package_version=__version__,
    )
    bundle = make_bundle(meta, trained.networks.tensors(), posterior, arrays)
    classify = _counted(trained.networks.classify, SCORES, expected, stage)
    scores = _scores(bundle, splits, views, classify, tuning, chosen.record, options)
    return replace(bundle, meta=replace(meta, scores=scores))


def least_validation_tracks(options: CalibrationOptions) -> int:
    """The validation tracks without which warnings cannot be fitted; every draw and regime counts as one."""
    return -(-FEWEST_TRACKS // (len(REGIMES) * options.draws))


def calibration_work(splits: Splits, networks: int, options: CalibrationOptions) -> Workload:
    """What `calibrated_bundle` will do, for whoever tells the time left."""
    folds = FOLDS * len(options.candidates) / len(CANDIDATES)
    return workload(splits, networks, options.draws, options.outliers, options.test, folds)


def _counted(
    classify: Callable[[np.ndarray], Views], name: str, expected: Mapping[str, StageWork], stage: Stage
) -> Callable[[np.ndarray], Views]:
    """The networks, telling after every batch how many of the stage's crops they have seen."""
    done, total = 0, expected[name].crops
    stage(name, 0, total)

    def counted(crops: np.ndarray) -> Views:
        nonlocal done
        views = classify(crops)
        done += len(crops)
        stage(name, min(done, total), total)
        return views

    return counted


def _posterior(
    trained: Trained, splits: Splits, views: TrackViews, options: CalibrationOptions
) -> tuple[EnsemblePosterior, Tuning]:
    """Fit on the training crops as training saw them: a third under each regime."""
    train = cut(splits.train, trained.size, trained.margin, border_of(trained.size))
    images = _one_third_each(train, options.seed)
    posterior = fit_posterior(trained.networks.classify, images, trained.prior_precision, options.cross)
    logits, features, label = views.flat()
    if len(label) > _TUNING_VIEWS:
        rows = np.random.default_rng(options.seed).choice(len(label), _TUNING_VIEWS, replace=False)
        logits, features, label = logits[rows], features[rows], label[rows]
    return tune(posterior, logits.astype(np.float64), features, label)


def warnings_for(
    classify: Callable[[np.ndarray], Views],
    posterior: EnsemblePosterior,
    splits: Splits,
    crops: CropSet,
    views: TrackViews,
    margin: float,
    options: CalibrationOptions,
) -> WarningModel:
    """The warnings of networks: `crops` of the validation tracks with a border, and `views` of them.

    Known objects are the training tracks under all regimes, every sixth frame.
    """
    met = warning_tracks(
        classify, splits.validation, crops, margin, options.outliers, options.background, options.seed
    )
    train = cut(splits.train, crops.size, margin, crops.border)
    some = train.take(np.flatnonzero(train.frame % 6 == 0))
    known = views_of_crops(classify, some, seed=options.seed + 3)
    return fit_warnings(posterior, views, met.strange, known, met.conditions, met.unreadable)


def _one_third_each(crops: CropSet, seed: int) -> np.ndarray:
    """Every crop once, every third one under each regime.  [crops, S, S, 3]"""
    parts = [
        degrade(crops.take(np.arange(start, len(crops), 3)), regime, seed).images
        for start, regime in enumerate(REGIMES)
    ]
    return np.concatenate(parts)


def _fuser_values(
    posterior: EnsemblePosterior, tracks: TrackViews, stage: Stage
) -> tuple[dict[str, dict[str, Any]], float]:
    names = list(fusers())
    stage(FUSERS, 0, len(names))
    views = flat_views(posterior, tracks.logits, tracks.features)
    weight_prior = fit_weight_prior(tracks, views)
    values = {}
    for done, name in enumerate(names, 1):
        values[name] = fit_fuser(name, tracks, views, weight_prior)
        stage(FUSERS, done, len(names))
    return values, weight_prior


class Chosen(NamedTuple):
    """The default fuser, the record of its choice, and the calibration of its sets and bounds."""

    name: str
    record: dict[str, Any]
    reliance: dict[str, Any]


def choose_safely(
    posterior: EnsemblePosterior,
    views: TrackViews,
    weight_prior: float | None,
    values: Mapping[str, Any],
    options: CalibrationOptions,
    stage: Stage,
) -> Chosen:
    """The default fuser, by cross-validation among the safe candidates; sets and bounds by the same folds."""
    stage(CHOICE, 0, 0)
    offered = [name for name in options.candidates if name in values]
    candidates, safety = safe_candidates(posterior, views, values, offered)
    choice = choose_default(
        posterior,
        views,
        weight_prior,
        candidates,
        seed=options.seed,
        progress=lambda name: stage(CHOICE, candidates.index(name), len(candidates)),
    )
    record = {
        "cross_validated_nll": choice.nll,
        "cross_validated_accuracy": choice.accuracy,
        "standard_error_of_difference": choice.standard_error,
        "safety": {name: found.as_dict() for name, found in safety.items()},
    }
    reliance = calibrate(choice.pmf, views.real, views.label, views.regime, views.source)
    return Chosen(choice.name, record, reliance.as_dict())


def _scores(
    bundle: Bundle,
    splits: Splits,
    views: TrackViews,
    classify: Callable[[np.ndarray], Views],
    tuning: Tuning,
    choice: dict[str, Any],
    options: CalibrationOptions,
) -> dict[str, Any]:
    scores: dict[str, Any] = {
        "laplace": {"summary": tuning.sentence(), "nll": tuning.nll, "nll_without": tuning.nll_plain},
        "default_fuser": choice,
        "validation": score_tracks(bundle, views),
    }
    if options.test and splits.test.tracks:
        crops = cut(splits.test, bundle.input_size, bundle.crop_margin, border_of(bundle.input_size))
        scores["test"] = score_tracks(bundle, views_of_crops(classify, crops, seed=options.seed + 2))
    return scores
