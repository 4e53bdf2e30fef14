"""The study of pools runs on any bundle with warnings, and its form of `dual_pool` is the package's."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lla_fusion_ros.calibration.collect import views_of_tracks
from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.fitting.dual_pool import MOST_LAPSE, least_lapse
from lla_fusion_ros.fusion.quality import QUALITY, quality
from support.tiny_datasets import make_trackset
from support.watched_bundle import watched_bundle

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import research_pools  # noqa: E402  # a folder of scripts, not a package


@pytest.fixture(scope="module")
def study():
    bundle = watched_bundle()
    tracks = make_trackset(classes=4, tracks=6, frames=12)
    views = views_of_tracks(Classifier(bundle), tracks, bundle.input_size, bundle.crop_margin)
    return bundle, views, research_pools.tensors(bundle, views, np.array([5, 1, 9, 3]))


@pytest.mark.parametrize("idea", research_pools.IDEAS, ids=lambda idea: idea.title)
def test_every_idea_gives_class_distributions(study, idea):
    _, views, tracks = study
    parameters = research_pools.fitted(idea, tracks.take(np.arange(len(views)) < 12))
    with torch.no_grad():
        pmf = research_pools.log_pmfs(idea, parameters, tracks).exp().numpy()
    assert pmf.shape == (len(views), len(research_pools.LENGTHS), 4)
    np.testing.assert_allclose(pmf.sum(axis=-1), 1.0, atol=1e-4)


def test_its_dual_pool_is_the_fuser_of_the_package(study):
    bundle, views, tracks = study
    idea = next(idea for idea in research_pools.IDEAS if idea.title.endswith("(`dual_pool`)"))
    rng = np.random.default_rng(0)
    linear, log, trust = rng.normal(size=(3, len(QUALITY))) * 0.3
    parameters = {
        "linear": torch.tensor(linear, dtype=torch.float32),
        "log": torch.tensor(log, dtype=torch.float32),
        "trust": torch.tensor(trust, dtype=torch.float32),
        "scalars": torch.tensor([0.2, 0.4, 0.1, -4.0, 0.1]),
        "powers": torch.tensor([0.3, 0.5]),
        "tail": torch.tensor([-3.0, -1.0]),
        "rarity": torch.tensor([0.5, 1.5]),
    }
    flat = flat_views(bundle.posterior(), views.logits, views.features)
    signs = quality(flat, prior=1.0)
    least = least_lapse(len(np.unique(views.source)))
    lapse, spread = torch.sigmoid(parameters["tail"]).tolist()
    values = {
        "linear_theta": linear.tolist(),
        "log_theta": log.tolist(),
        "trust": trust.tolist(),
        "center": signs.mean(axis=0).tolist(),
        "scale": signs.std(axis=0).tolist(),
        "alpha": 0.2,
        "temperature": float(np.exp(0.4)),
        "view_temperature": float(np.exp(0.1)),
        "a": 0.3,
        "b": 0.5,
        "lapse": least + (MOST_LAPSE - least) * lapse,
        "spread": spread,
        "linear_rarity": 0.5,
        "log_rarity": 1.5,
        "prior": 1.0,
    }
    steps = views.logits.shape[1]
    package = pmf_along(make_fuser("dual_pool", bundle.posterior(), values), flat, steps)
    with torch.no_grad():
        study_pmf = research_pools.log_pmfs(idea, parameters, tracks).exp().numpy()
    places = tracks.last.numpy()
    expected = package[np.arange(len(views))[:, None], places]
    np.testing.assert_allclose(study_pmf, expected, atol=5e-3)  # the study bounds signs at 8 spreads
