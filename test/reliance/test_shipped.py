"""Promises of the shipped sign-world bundle, on tracks that were rendered for this test."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.evaluation.reliance_scores import bound_records, coverage_records
from lla_fusion_ros.networks.classifier import Classifier


@pytest.mark.parametrize("regime", ["clean", "hard"])
def test_what_the_sign_world_bundle_promises_holds_on_fresh_tracks(regime, fresh) -> None:
    bundle, tracks = fresh
    own = tracks.take(tracks.regime == regime)
    views = flat_views(bundle.posterior(), own.logits, own.features)
    pmf = pmf_along(bundle.fuser(), views, own.longest)
    reliance = bundle.reliance()
    assert min(reliance.promised(group) for group in range(3)) >= 0.95
    for record in coverage_records(reliance, pmf, own):
        assert record["held"] >= record["least"], record
    (bounds,) = bound_records(reliance, pmf, views.mean_pmf.reshape(pmf.shape), own, None)
    assert bounds["error"] <= bounds["mean_bound"]


@pytest.fixture(scope="module")
def fresh():
    bundle = load_bundle("signworld")
    tracks = load_dataset("signworld", None, None, bundle.input_size, tracks=100, frames=20, seed=77)
    classify = Classifier(bundle, precision="float32")
    return bundle, views_of_tracks(
        classify, tracks, bundle.input_size, bundle.crop_margin, ("clean", "hard"), seed=99
    )


def test_shipped_bundles_say_what_they_promise() -> None:
    for name in ("gtsrb", "belgium", "signworld"):
        reliance = load_bundle(name).reliance()
        assert reliance is not None
        assert reliance.promised(0) >= 0.95 and np.isfinite(reliance.bounds).all()
        assert reliance.bounds[0] < 0.1
