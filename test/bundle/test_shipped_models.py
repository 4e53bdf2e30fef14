"""The bundles in models/: small enough, complete, and as good as their cards say."""

from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.lab.calibration.fusers import fused_after
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.datasets.belgium import CLASS_NAMES as BELGIUM_NAMES
from lla_fusion_ros.lab.datasets.gtsrb import CLASS_NAMES as GTSRB_NAMES
from lla_fusion_ros.lab.evaluation.ood import COMBINED, track_scores_after
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import CLASS_NAMES as SIGNWORLD_NAMES
from lla_fusion_ros.types.metrics import auroc

MODELS = Path(__file__).resolve().parents[2] / "models"
LARGEST = {"signworld": 3_000_000, "gtsrb": 10_000_000, "belgium": 10_000_000}
NAMES = {"signworld": SIGNWORLD_NAMES, "gtsrb": GTSRB_NAMES, "belgium": BELGIUM_NAMES}


@pytest.fixture(scope="module", params=sorted(LARGEST))
def shipped(request):
    return request.param, load_bundle(MODELS / f"{request.param}.safetensors")


def test_a_shipped_bundle_is_small_and_complete(shipped):
    name, bundle = shipped
    assert (MODELS / f"{name}.safetensors").stat().st_size <= LARGEST[name]
    assert bundle.networks == 5
    assert bundle.class_names == tuple(NAMES[name]), "classes stand in the data set's order"
    assert bundle.meta.default_fuser in fusers()
    assert set(fusers()) <= set(bundle.meta.fusers), "every fuser was fitted"
    assert bundle.warning_model() is not None
    made_by = ("lla-fusion train", "python tools/refit_warnings.py")
    assert all(command.startswith(made_by) for command in bundle.meta.training["commands"])


def test_every_fuser_of_a_shipped_bundle_runs(shipped):
    _, bundle = shipped
    crops = np.random.default_rng(0).integers(0, 256, (2, bundle.input_size, bundle.input_size, 3), np.uint8)
    views = Classifier(bundle, device="cpu")(crops)
    for name in fusers():
        fuser = bundle.fuser(name)
        pmf = fuser.predict(fuser.update(fuser.initial(2), views))
        np.testing.assert_allclose(pmf.sum(axis=1), 1.0, atol=1e-9)


def test_the_sign_world_bundle_knows_fresh_tracks_and_finds_strange_ones():
    bundle = load_bundle(MODELS / "signworld.safetensors")
    tracks = load_dataset("signworld", tracks=34, outside=16, frames=6, seed=77)  # not the seed of training
    views = views_of_tracks(
        Classifier(bundle, device="cpu"), tracks, bundle.input_size, bundle.crop_margin, ("clean",)
    )
    known = views.take(views.label >= 0)
    measured = flat_views(bundle.posterior(), known.logits, known.features)
    pmf = fused_after(bundle.fuser(), known, measured, (6,))[6]
    assert (pmf.argmax(axis=1) == known.label).mean() >= 0.94
    score = track_scores_after(bundle.warning_model(), bundle.posterior(), views, (6,))[6][COMBINED]
    assert auroc(score, views.label < 0) > 0.95
