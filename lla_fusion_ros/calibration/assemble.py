"""From trained networks to a bundle: temperatures, posterior, fusers, default, warnings, scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, BundleMeta, make_bundle
from lla_fusion_ros.calibration.choose import CANDIDATES, Choice, choose_default
from lla_fusion_ros.calibration.collect import REGIME_ORDER, border_of, views_of_crops
from lla_fusion_ros.calibration.fusers import fit_fuser, fit_weight_prior
from lla_fusion_ros.calibration.laplace import fit_posterior
from lla_fusion_ros.calibration.scores import score_tracks
from lla_fusion_ros.calibration.temperature import fit_temperatures, scale_heads, scaled
from lla_fusion_ros.datasets import CropSet, Splits, cut, degrade
from lla_fusion_ros.datasets.outliers import outlier_tracks
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.networks import Ensemble, Normalisation, SplitNetwork
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.tune import Tuning, tune
from lla_fusion_ros.track_views import TrackViews, joined
from lla_fusion_ros.views import Views
from lla_fusion_ros.warnings.fit import fit_warnings

Stage = Callable[[str], None]
_TUNING_VIEWS = 1500  # more of them choose the same prior, and take longer


@dataclass(frozen=True, slots=True)
class Trained:
    """Trained networks and what they were told.

    Attributes:
        settings: goes into the bundle's `training` record.
    """

    members: Sequence[SplitNetwork]
    architecture: dict[str, Any]
    normalisation: Normalisation
    size: int
    margin: float
    prior_precision: float
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Attributes:
    cross: also fit the covariance between networks; C^2 blocks make the file larger.
    half: store network weights in 16 bits.
    outliers: number of synthetic outlier tracks the warning model is fitted on.
    draws: how often the validation tracks are degraded; more draws steady the fuser's fits.
    test: also score the test tracks.
    seed: of degradations, outliers and folds.
    """

    cross: bool = False
    half: bool = False
    outliers: int = 360
    draws: int = 2
    test: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(f"calibration needs at least one draw of the degradations, not {self.draws}")


def calibrated_bundle(
    trained: Trained, splits: Splits, dataset: dict[str, Any], options: CalibrationOptions, stage: Stage
) -> Bundle:
    """Fit everything that comes after training, on validation tracks under all regimes, and score it."""
    border = border_of(trained.size)
    validation = cut(splits.validation, trained.size, trained.margin, border)
    stage("temperature scaling")
    views = joined(
        [
            views_of_crops(_classifier(trained), validation, seed=options.seed + 1000 * draw)
            for draw in range(options.draws)
        ]
    )
    temperatures = fit_temperatures(views)
    scale_heads(trained.members, temperatures)
    views = scaled(views, temperatures)
    classify = _classifier(trained)
    stage("Laplace posterior")
    posterior, tuning = _posterior(trained, splits, views, options)
    values, weight_prior = _fuser_values(posterior, views, stage)
    stage("choosing the default fuser")
    choice = choose_default(
        posterior, views, weight_prior, [n for n in CANDIDATES if n in values], seed=options.seed
    )
    stage("warning models")
    outside = views_of_crops(
        classify, outlier_tracks(validation, options.outliers, options.seed), seed=options.seed + 1
    )
    warnings = fit_warnings(posterior, views, outside, _known(trained, splits, classify, options))
    arrays, record = warnings.to_parts()
    meta = BundleMeta(
        architecture=trained.architecture,
        networks=len(trained.members),
        class_names=splits.train.class_names,
        input_size=trained.size,
        crop_margin=trained.margin,
        normalisation=trained.normalisation.as_dict(),
        prior_precision=posterior.prior_precision,
        posterior_temperature=posterior.temperature,
        default_fuser=choice.name,
        softmax_temperature=tuple(temperatures),
        weight_prior=weight_prior,
        fusers=values,
        warnings=record,
        dataset=dataset,
        training=trained.settings,
        package_version=__version__,
    )
    bundle = make_bundle(meta, trained.members, posterior, arrays, options.half)
    stage("scores")
    scores = _scores(bundle, splits, views, classify, tuning, choice, options)
    return replace(bundle, meta=replace(meta, scores=scores))


def _classifier(trained: Trained) -> Callable[[np.ndarray], Views]:
    """The networks as they are now; built again after the heads were scaled."""
    ensemble = Ensemble(trained.members)

    def classify(crops: np.ndarray) -> Views:
        with torch.inference_mode():
            logits, features = ensemble(trained.normalisation(torch.from_numpy(np.ascontiguousarray(crops))))
        return Views(logits.numpy(), features.numpy())

    return classify


def _posterior(
    trained: Trained, splits: Splits, views: TrackViews, options: CalibrationOptions
) -> tuple[EnsemblePosterior, Tuning]:
    """Fit on the training crops as training saw them: a third under each regime."""
    train = cut(splits.train, trained.size, trained.margin, border_of(trained.size))
    images = _one_third_each(train, options.seed)
    posterior = fit_posterior(
        Ensemble(trained.members), images, trained.normalisation, trained.prior_precision, options.cross
    )
    logits, features, label = views.flat()
    if len(label) > _TUNING_VIEWS:
        rows = np.random.default_rng(options.seed).choice(len(label), _TUNING_VIEWS, replace=False)
        logits, features, label = logits[rows], features[rows], label[rows]
    return tune(posterior, logits.astype(np.float64), features, label)


def _known(
    trained: Trained, splits: Splits, classify: Callable[[np.ndarray], Views], options: CalibrationOptions
) -> TrackViews:
    """Training tracks under all regimes, every third frame: what the warnings take for known objects."""
    crops = cut(splits.train, trained.size, trained.margin, border_of(trained.size))
    return views_of_crops(classify, crops.take(np.flatnonzero(crops.frame % 3 == 0)), seed=options.seed + 3)


def _one_third_each(crops: CropSet, seed: int) -> np.ndarray:
    """Every crop once, every third one under each regime.  [crops, S, S, 3]"""
    parts = [
        degrade(crops.take(np.arange(start, len(crops), 3)), regime, seed).images
        for start, regime in enumerate(REGIME_ORDER)
    ]
    return np.concatenate(parts)


def _fuser_values(
    posterior: EnsemblePosterior, tracks: TrackViews, stage: Stage
) -> tuple[dict[str, dict[str, Any]], float]:
    views = flat_views(posterior, tracks.logits, tracks.features)
    stage("prior of the weights")
    weight_prior = fit_weight_prior(tracks, views)
    values = {}
    for name in fusers():
        stage(f"fuser {name}")
        values[name] = fit_fuser(name, tracks, views, weight_prior)
    return values, weight_prior


def _scores(
    bundle: Bundle,
    splits: Splits,
    views: TrackViews,
    classify: Callable[[np.ndarray], Views],
    tuning: Tuning,
    choice: Choice,
    options: CalibrationOptions,
) -> dict[str, Any]:
    scores: dict[str, Any] = {
        "laplace": {"summary": tuning.sentence(), "nll": tuning.nll, "nll_without": tuning.nll_plain},
        "default_fuser": {
            "cross_validated_nll": choice.nll,
            "cross_validated_accuracy": choice.accuracy,
            "standard_error_of_difference": choice.standard_error,
        },
        "validation": score_tracks(bundle, views),
    }
    if options.test and splits.test.tracks:
        crops = cut(splits.test, bundle.input_size, bundle.crop_margin, border_of(bundle.input_size))
        scores["test"] = score_tracks(bundle, views_of_crops(classify, crops, seed=options.seed + 2))
    return scores
