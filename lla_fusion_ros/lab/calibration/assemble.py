"""From trained networks to a bundle: temperatures, posterior, fusers, default, warnings, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, BundleMeta, make_bundle
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.lab.calibration.changes import with_changes
from lla_fusion_ros.lab.calibration.collect import views_of_crops
from lla_fusion_ros.lab.calibration.cross_fit import Part, apart, side_by_side
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
from lla_fusion_ros.lab.calibration.warning_tracks import Classify, known_views, seen_by
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
from lla_fusion_ros.lab.datasets import (
    APPROACH,
    FITTED_REGIMES,
    REGIMES,
    CropSet,
    Splits,
    TrackSet,
    border_of,
    cut,
    degrade,
)
from lla_fusion_ros.lab.datasets.background import background_tracks
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.tune import Tuning, tune
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import fit_warnings_of, known_space

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
    trained: Trained,
    splits: Splits,
    dataset: dict[str, Any],
    options: CalibrationOptions,
    stage: Stage,
    parts: Sequence[Part] = (),
) -> Bundle:
    """Fit everything that comes after training, on validation tracks under all regimes, and score it.

    `parts` stand in for networks that have seen the validation tracks.
    """
    parts = parts or [Part(trained.networks, splits.train, splits.validation)]
    expected = calibration_work(splits, len(trained.networks), options).stages
    counted = _Counted(TEMPERATURES, expected, stage)
    views = apart([_views(counted(part.networks), part.unseen, trained, options) for part in parts])
    temperatures = fit_temperatures(scored(joined(views)))
    for networks in dict.fromkeys((trained.networks, *(part.networks for part in parts))):
        networks.scale(temperatures)
    views = [scaled(each, temperatures) for each in views]
    stage(POSTERIOR, 0, 0)
    posteriors = [_posterior(trained, part.networks, part.train, options) for part in parts]
    posterior, seen = side_by_side(posteriors, views)
    posterior, tuning = _tuned(posterior, scored(seen), options.seed)
    values, weight_prior = _fuser_values(posterior, seen, stage)
    chosen = choose_safely(posterior, seen, weight_prior, values, options, stage)
    fuser = make_fuser(chosen.name, posterior, values[chosen.name])  # of networks that have not seen them
    scores: dict[str, Any] = {
        "laplace": {"summary": tuning.sentence(), "nll": tuning.nll, "nll_without": tuning.nll_plain},
        "default_fuser": chosen.record,
        "validation": score_tracks(fuser, scored(seen)),
    }
    counted = _Counted(WARNINGS, expected, stage)
    met = [
        seen_by(
            counted(part.networks),
            own,
            part.train,
            part.unseen,
            scored(each),
            trained.size,
            trained.margin,
            options.outliers // len(parts),
            options.background,
            options.seed + number,
        )
        for number, (part, own, each) in enumerate(zip(parts, posteriors, views, strict=True))
    ]
    known = met[0].base
    if len(parts) > 1:  # the networks themselves, as the parts were tuned
        own = _posterior(trained, trained.networks, splits.train, options)
        posterior = own.with_prior(posterior.prior_precision).with_temperature(posterior.temperature)
        place = trained.size, trained.margin, options.seed
        known = known_views(counted(trained.networks), splits.train, *place)
    arrays, record = fit_warnings_of(met, known_space(known)).to_parts()
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
    bundle = with_changes(bundle, seen, fuser)
    if options.test and splits.test.tracks:
        classify = _Counted(SCORES, expected, stage)(trained.networks)
        crops = cut(splits.test, trained.size, trained.margin, border_of(trained.size))
        test = views_of_crops(classify, crops, seed=options.seed + 2)
        scores["test"] = score_tracks(bundle.fuser(), test)
    return replace(bundle, meta=replace(bundle.meta, scores=scores))


def least_validation_tracks(options: CalibrationOptions) -> int:
    """The validation tracks without which warnings cannot be fitted; every draw and regime counts as one."""
    return -(-FEWEST_TRACKS // (len(REGIMES) * options.draws))


def calibration_work(splits: Splits, networks: int, options: CalibrationOptions) -> Workload:
    """What `calibrated_bundle` will do, for whoever tells the time left."""
    folds = FOLDS * len(options.candidates) / len(CANDIDATES)
    return workload(splits, networks, options.draws, options.outliers, options.test, folds)


class _Counted:
    """Networks that tell after every batch how many of the stage's crops they have seen together."""

    def __init__(self, name: str, expected: Mapping[str, StageWork], stage: Stage) -> None:
        self._name, self._total, self._stage = name, expected[name].crops, stage
        self._done = 0
        stage(name, 0, self._total)

    def __call__(self, networks: Networks) -> Classify:
        def classify(crops: np.ndarray) -> Views:
            views = networks.classify(crops)
            self._done += len(crops)
            self._stage(self._name, min(self._done, self._total), self._total)
            return views

        return classify


def _views(classify: Classify, tracks: TrackSet, trained: Trained, options: CalibrationOptions) -> TrackViews:
    """Every draw of the degradations of the tracks."""
    crops = cut(tracks, trained.size, trained.margin, border_of(trained.size))
    seeds = [options.seed + 1000 * draw for draw in range(options.draws)]
    return joined([views_of_crops(classify, crops, FITTED_REGIMES, seed) for seed in seeds])


def scored(tracks: TrackViews) -> TrackViews:
    """Those that results are stated of: all but approaches, which only fusers are fitted on."""
    return tracks.take(tracks.regime != APPROACH)


def _posterior(
    trained: Trained, networks: Networks, tracks: TrackSet, options: CalibrationOptions
) -> EnsemblePosterior:
    """Fit on the training crops as training saw them: a third under each regime."""
    images = _one_third_each(cut(tracks, trained.size, trained.margin, border_of(trained.size)), options.seed)
    return fit_posterior(networks.classify, images, trained.prior_precision, options.cross)


def _tuned(posterior: EnsemblePosterior, views: TrackViews, seed: int) -> tuple[EnsemblePosterior, Tuning]:
    logits, features, label = views.flat()
    if len(label) > _TUNING_VIEWS:
        rows = np.random.default_rng(seed).choice(len(label), _TUNING_VIEWS, replace=False)
        logits, features, label = logits[rows], features[rows], label[rows]
    return tune(posterior, logits.astype(np.float64), features, label)


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
    views = views_of(posterior, tracks)
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
        by_quality=bool(values.get("evidence_pool", {}).get("by_quality", True)),
    )
    record = {
        "cross_validated_nll": choice.nll,
        "cross_validated_accuracy": choice.accuracy,
        "standard_error_of_difference": choice.standard_error,
        "safety": {name: found.as_dict() for name, found in safety.items()},
    }
    rows = views.regime != APPROACH
    kept = views.take(rows)
    reliance = calibrate(choice.pmf[rows], kept.real, kept.label, kept.regime, kept.source)
    return Chosen(choice.name, record, reliance.as_dict())
