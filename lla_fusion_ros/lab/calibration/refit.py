"""Fit the answers "unknown" and "cannot tell" of a bundle again; networks, posterior and fusers stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.lab.calibration.collect import REGIME_ORDER, border_of, views_of_crops
from lla_fusion_ros.lab.calibration.warning_tracks import warning_tracks
from lla_fusion_ros.lab.datasets import TrackSet, cut
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import joined
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import refit_unknown

LONGEST = 20  # views of a track


def refit_bundle(
    bundle: Bundle,
    validation: TrackSet,
    folder: str | Path | None = None,
    outliers: int = 360,
    seed: int = 0,
    command: str = "",
    progress: Callable[[int], None] = lambda crops: None,
) -> Bundle:
    """The bundle with warnings fitted on its validation tracks; `progress` hears of crops classified."""
    model = bundle.warning_model()
    if model is None:
        raise InputError(
            f"bundle '{bundle.source}' has no warnings to fit again; train it with validation tracks"
        )
    classifier = Classifier(bundle, "cpu", "auto")  # as nodes run it

    def classify(crops: np.ndarray) -> Views:
        progress(len(crops))
        return classifier(crops)

    crops = cut(validation, bundle.input_size, bundle.crop_margin, border_of(bundle.input_size))
    inside = views_of_crops(classify, crops, seed=seed, longest=LONGEST)
    extra = warning_tracks(classify, validation, crops, bundle.crop_margin, outliers, folder, seed)
    known = joined([inside, extra.conditions])
    fitted = refit_unknown(model, bundle.posterior(), known, extra.strange, extra.unreadable, REGIME_ORDER)
    _, record = fitted.to_parts()
    training = dict(bundle.meta.training)
    if command:
        training["commands"] = [*training.get("commands", []), command]
    return replace(bundle, meta=replace(bundle.meta, warnings=record, training=training))
