"""What is fitted after the networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.lab.calibration.fusers import (
    choose_default,
    decisive_lengths,
    fit_fuser,
    folds_by_object,
    fused_after,
    fuser_loss,
    safe_candidates,
    winner,
)
from lla_fusion_ros.lab.calibration.network_calibration import (
    TorchNetworks,
    fit_temperature,
    fit_temperatures,
    scaled,
    temperature_scaled,
)
from lla_fusion_ros.networks import Normalisation
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.track_views import TrackViews
from support.tiny_bundle import tiny_bundle
from support.toy_tracks import toy_tracks

NETWORKS, CLASSES, FEATURES = 2, 3, 5


def _tracks(count=60, steps=6, seed=0, strength=1.5):
    """Noisy views of known classes; lengths vary, two networks see the same noise in part."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, count)
    shared = rng.normal(size=(count, steps, 1, CLASSES))
    logits = strength * np.eye(CLASSES)[label][:, None, None] + shared
    logits = logits + 0.5 * rng.normal(size=(count, steps, NETWORKS, CLASSES))
    features = np.concatenate(
        [rng.normal(size=(count, steps, NETWORKS, FEATURES - 1)), np.ones((count, steps, NETWORKS, 1))],
        axis=-1,
    )
    return TrackViews(
        (3.0 * logits).astype(np.float32),  # three times too sure
        features.astype(np.float32),
        np.zeros((count, steps), int),
        rng.integers(2, steps + 1, count),
        label,
        np.array(["clean", "hard"])[np.arange(count) % 2],
        np.arange(count) // 2,
    )


def _measured(posterior, tracks):
    return flat_views(posterior, tracks.logits, tracks.features)


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(NETWORKS, CLASSES, 30, FEATURES))
    return EnsemblePosterior(np.linalg.cholesky(data.swapaxes(-1, -2) @ data + np.eye(FEATURES)), 1.0)


def test_scaled_heads_give_scaled_logits():
    members = tiny_bundle().members()
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        before = [member(images) for member in members]
        TorchNetworks(members, Normalisation()).scale([2.0, 0.5])
        torch.testing.assert_close(members[0](images), before[0] / 2.0)
        torch.testing.assert_close(members[1](images), before[1] / 0.5)


def test_views_of_tracks_keep_order_labels_cameras_and_lengths():
    tracks = toy_tracks(per_class=2, frames=4)
    bundle = tiny_bundle(classes=3)
    classify = Classifier(bundle, device="cpu")
    views = views_of_tracks(classify, tracks, 16, 0.1, ("clean", "hard"), longest=3)
    assert len(views) == 12 and views.logits.shape[1] == 3
    assert (views.steps == 3).all()
    assert views.label[:6].tolist() == [track.label for track in tracks.tracks]
    assert views.camera[0].tolist() == [0, 1, 0]
    assert views.regime.tolist() == ["clean"] * 6 + ["hard"] * 6
    assert (views.source[:6] == views.source[6:]).all()
    one = views_of_tracks(classify, replace(tracks, tracks=tracks.tracks[3:4]), 16, 0.1, ("clean",))
    np.testing.assert_allclose(one.logits[0, :3], views.logits[3], atol=1e-5)


@pytest.mark.parametrize("name", ["pool", "ema", "wls_robust"])
def test_fitting_lowers_the_nll_and_stays_within_bounds(name, posterior):
    tracks = _tracks(120)
    views = _measured(posterior, tracks)
    values = fit_fuser(name, tracks, views)
    scalars = fusers()[name].scalars
    assert set(scalars) <= set(values)
    assert all(scalars[key].low <= values[key] <= scalars[key].high for key in scalars)
    fitted, unfitted = (fuser_loss(make_fuser(name, posterior, v), tracks, views) for v in (values, None))
    assert fitted <= unfitted + 1e-9


def test_tracks_that_are_all_right_do_not_make_a_fuser_infinitely_sure(posterior):
    easy = _tracks(50, strength=30.0)
    views = _measured(posterior, easy)
    values = fit_fuser("pool", easy, views)
    pmf = fused_after(make_fuser("pool", posterior, values), easy, views, (2,))[2]
    assert (pmf.argmax(axis=1) == easy.reaching(2).label).all()
    assert np.median(1 - pmf.max(axis=1)) > 1e-4, "one wrong track in fifty must stay imaginable"


def test_folds_never_split_an_object():
    tracks = _tracks(30)
    fold = folds_by_object(tracks, 3, seed=0)
    for source in np.unique(tracks.source):
        assert len(set(fold[tracks.source == source])) == 1
    assert set(fold) == {0, 1, 2}


def test_the_default_has_the_lowest_nll_on_tracks_it_was_not_fitted_on(posterior):
    candidates = ("product", "pool")
    choice = choose_default(posterior, _tracks(120), None, candidates, lengths=(1, 3, 5), tolerance=1.0)
    assert choice.name == "pool", "the views are overconfident and correlated: the product must lose"
    assert choice.nll["pool"] < choice.nll["product"]
    assert choice.standard_error["pool"] == 0 < choice.standard_error["product"]


def test_tracks_too_short_for_the_lengths_that_decide_are_scored_at_the_longest_they_reach(posterior):
    tracks = _tracks(60)
    short = replace(tracks, steps=np.minimum(tracks.steps, 4))
    choice = choose_default(posterior, short, candidates=("mean_pmf", "last"), tolerance=1.0)
    again = choose_default(posterior, short, candidates=("mean_pmf", "last"), lengths=(3,), tolerance=1.0)
    assert choice.nll == again.nll


def test_only_safe_fusers_may_be_the_default_and_all_may_where_none_is_safe(posterior):
    tracks = _tracks(60, strength=3.0)
    names = ("evidence_pool", "product", "pool")
    views = _measured(posterior, tracks)
    values = {name: fit_fuser(name, tracks, views) for name in names}
    allowed, safety = safe_candidates(posterior, tracks, values, names)
    assert allowed == ["evidence_pool"] and set(safety) == set(names)
    assert any("contradict" in fault for fault in safety["product"].faults())
    assert safe_candidates(posterior, tracks, values, names[1:])[0] == ["product", "pool"]


def test_calibration_without_a_single_draw_is_refused():
    with pytest.raises(InputError, match="at least one draw"):
        CalibrationOptions(draws=0)


def test_the_winner_has_the_lowest_mean_loss_of_those_that_name_the_right_classes():
    objects = np.arange(100)
    right, worse = np.ones(100), np.full(100, 0.2)
    one_bad = {"evidence_pool": np.where(objects == 7, 15.0, 0.15), "other": worse}
    assert winner(one_bad, dict.fromkeys(one_bad, right), 0.003) == "other"
    losses = {"other": worse, "lower": np.full(100, 0.1)}
    assert winner(losses, {"other": right, "lower": np.where(objects < 5, 0.0, 1.0)}, 0.003) == "other"
    # one object wrong, the other fuser half of another: a hundred objects cannot tell them apart
    hits = {"other": np.where(objects == 5, 0.5, 1.0), "lower": np.where(objects == 7, 0.0, 1.0)}
    assert winner(losses, hits, 0.003) == "lower"


def test_a_few_long_tracks_among_short_ones_do_not_decide():
    assert decisive_lengths(np.array([3] * 300 + [12]), (10, 20, 30)) == [3]
    assert decisive_lengths(np.array([3] * 3 + [12]), (10, 20, 30)) == [10]
    assert decisive_lengths(np.full(50, 30), (10, 20, 30)) == [10, 20, 30]
    assert decisive_lengths(np.ones(5, int), (10,)) == [1]


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_the_fitted_temperature_undoes_the_scale_of_the_logits(scale):
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(20_000, 5))
    label = (rng.random((20_000, 1)) > softmax(truth).cumsum(-1)).sum(-1).clip(0, 4)
    temperature = fit_temperature(scale * truth, label)
    assert temperature == pytest.approx(scale, rel=0.05)
    losses = [nll(temperature_scaled(scale * truth, f * temperature), label) for f in (0.9, 1.0, 1.1)]
    assert min(losses) == losses[1]


def test_temperatures_are_fitted_for_each_network_and_fitting_again_changes_nothing():
    tracks = _tracks(400)
    temperatures = fit_temperatures(tracks)
    assert all(t > 1.5 for t in temperatures), "the views are three times too sure"
    assert fit_temperatures(scaled(tracks, temperatures)) == pytest.approx([1.0, 1.0], rel=1e-3)
