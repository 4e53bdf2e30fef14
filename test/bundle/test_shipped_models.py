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
from lla_fusion_ros.lab.datasets.sign_sets import BELGIUM_NAMES, GTSRB_NAMES
from lla_fusion_ros.lab.evaluation.warning_scores import COMBINED, track_scores_after
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import CLASS_NAMES as SIGNWORLD_NAMES
from lla_fusion_ros.types.metrics import auroc
from lla_fusion_ros.types.pmf import softmax

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
    made = ("lla-fusion train", "lla-fusion calibrate")
    assert all(command.startswith(made) for command in bundle.meta.training["commands"])


def test_every_fuser_of_a_shipped_bundle_runs(shipped):
    _, bundle = shipped
    crops = np.random.default_rng(0).integers(0, 256, (2, bundle.input_size, bundle.input_size, 3), np.uint8)
    views = Classifier(bundle, device="cpu")(crops)
    for name in fusers():
        fuser = bundle.fuser(name)
        pmf = fuser.predict(fuser.update(fuser.initial(2), views))
        np.testing.assert_allclose(pmf.sum(axis=1), 1.0, atol=1e-9)


@pytest.fixture(scope="module")
def sign_world():
    """The bundle, and tracks that it was not trained on."""
    tracks = load_dataset("signworld", tracks=20, outside=8, frames=3, seed=77)
    return load_bundle(MODELS / "signworld.safetensors"), tracks


def clean_views(bundle, tracks, precision):
    classify = Classifier(bundle, "cpu", precision)
    return views_of_tracks(classify, tracks, bundle.input_size, bundle.crop_margin, ("clean",))


def test_the_sign_world_bundle_knows_fresh_tracks_and_finds_strange_ones(sign_world):
    bundle, tracks = sign_world
    views = clean_views(bundle, tracks, "float32")
    known = views.take(views.label >= 0)
    measured = flat_views(bundle.posterior(), known.logits, known.features)
    pmf = fused_after(bundle.fuser(), known, measured, (3,))[3]
    assert (pmf.argmax(axis=1) == known.label).mean() >= 0.94
    score = track_scores_after(bundle.warning_model(), bundle.posterior(), views, (3,))[3][COMBINED]
    assert auroc(score, views.label < 0) > 0.95


def test_shipped_networks_say_the_same_in_eight_bits(sign_world):
    bundle, tracks = sign_world
    exact, rounded = (clean_views(bundle, tracks, precision) for precision in ("float32", "int8"))
    a, b = (softmax(views.flat()[0]).mean(axis=1) for views in (exact, rounded))
    assert 0.5 * np.abs(a - b).sum(axis=1).mean() < 0.005
    assert (a.argmax(axis=1) == b.argmax(axis=1)).mean() > 0.97
    assert not np.array_equal(a, b)  # it was really another computation
