"""Each out-of-distribution score against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis

from lla_fusion_ros.fusion.measure import zero_views
from lla_fusion_ros.types.pmf import monte_carlo, mutual_information
from lla_fusion_ros.warnings import scores
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.model import SCORES
from lla_fusion_ros.warnings.state import Sums
from support.feature_world import FeatureWorld
from support.tiny_posterior import make_posterior, make_views


def test_the_fused_variance_of_the_mean_feature_is_that_of_the_mean_of_all_views() -> None:
    """w^T K w with equal weights over views and networks, K written out."""
    posterior = make_posterior()
    features = np.stack([make_views(posterior, 1, seed).features[0] for seed in range(5)])
    weights = np.full(15, 1 / 15)
    expected = np.einsum("r,mrs,s->m", weights, posterior.joint_covariance(features), weights)
    np.testing.assert_allclose(
        scores.fused_variance(posterior, features.mean(axis=0)[None])[0], expected, rtol=1e-5
    )


def test_information_is_zero_without_variance_and_grows_with_it() -> None:
    logits = np.array([[1.0, 0.0, -1.0]])
    values = [scores.laplace_information(logits, np.full((1, 3), v))[0] for v in (0.0, 0.1, 1.0, 5.0)]
    assert values[0] == pytest.approx(0.0, abs=1e-12)
    assert values == sorted(values)


def test_information_agrees_with_many_random_samples() -> None:
    rng = np.random.default_rng(0)
    logits, variance = rng.normal(size=(1, 4)), rng.uniform(0.2, 2.0, (1, 4))
    z = logits + np.sqrt(variance) * rng.normal(size=(200_000, 4))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    mean = p.mean(axis=0)
    exact = -(mean * np.log(mean)).sum() + (p * np.log(p)).sum(axis=1).mean()
    assert scores.laplace_information(logits, variance, 32)[0] == pytest.approx(exact, rel=0.15)


def test_neighbour_distance_is_the_mean_over_the_nearest() -> None:
    rng = np.random.default_rng(0)
    bank, probe = rng.normal(size=(30, 8)), rng.normal(size=(4, 8))
    bank /= np.linalg.norm(bank, axis=1, keepdims=True)
    probe /= np.linalg.norm(probe, axis=1, keepdims=True)
    expected = [np.sort(1 - bank @ row)[:5].mean() for row in probe]
    np.testing.assert_allclose(scores.neighbour_distance(bank, probe, 5), expected)


def test_unit_features_ignore_their_scale_and_the_bias() -> None:
    features = np.random.default_rng(0).normal(size=(2, 3, 5))
    scaled = features * np.array([2.0, 5.0, 0.1])[:, None]
    scaled[..., -1] = 77.0
    units = []
    for array in (features, scaled):
        plain = scores.plain_features(array)
        units.append(scores.unit_features(plain))
    np.testing.assert_allclose(units[1], units[0], rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(units[0], axis=1), 1.0, rtol=1e-6)


def test_absurd_features_keep_every_distance_finite() -> None:
    plain = scores.plain_features(np.full((1, 2, 4), 1e30))
    assert np.isfinite(scores.lengths(plain)).all()
    assert np.isfinite(scores.unit_features(plain)).all()
    square = np.broadcast_to(np.eye(3, dtype=np.float32), (2, 3, 3))
    assert np.isfinite(scores.class_distance(plain, square, square)).all()
    assert np.isfinite(scores.residual_norm(plain, np.zeros((2, 3), np.float32), square)).all()


def test_class_distance_is_the_mahalanobis_distance_to_the_nearest_class() -> None:
    rng = np.random.default_rng(0)
    covariance = np.cov(rng.normal(size=(4, 50)))
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
    means, probe = rng.normal(size=(3, 4)), rng.normal(size=(2, 1, 5))
    expected = [
        min(mahalanobis(row[0, :-1], mean, np.linalg.inv(covariance)) for mean in means) for row in probe
    ]
    centres = (means @ whitening)[None]
    found = scores.class_distance(probe[..., :-1], whitening[None], centres)
    np.testing.assert_allclose(found, expected)


def test_residual_norm_is_what_lies_outside_the_principal_subspace() -> None:
    features = np.array([[[3.0, 4.0, 12.0, 1.0]]])
    residual = np.eye(3)[None, :, 1:]  # the first direction is the principal one
    assert scores.residual_norm(features[..., :-1], np.zeros((1, 3)), residual)[0] == pytest.approx(
        np.hypot(4, 12)
    )


def test_information_is_that_of_the_cloud() -> None:
    rng = np.random.default_rng(7)
    logits, variance = rng.normal(size=(6, 9)) * 4, rng.uniform(0, 5, (6, 9))
    expected = mutual_information(monte_carlo(logits, variance, 32))
    np.testing.assert_allclose(scores.laplace_information(logits, variance, 32), expected, atol=1e-12)


def test_absurd_features_give_a_large_finite_variance() -> None:
    posterior = make_posterior()
    features = np.full((2, posterior.networks, posterior.features), 1e30)
    variance = scores.fused_variance(posterior, features)
    assert np.isfinite(variance).all() and (variance > 1e12).all()
    assert np.isfinite(scores.laplace_information(np.zeros(variance.shape), variance)).all()


def test_scores_asked_for_alone_are_those_of_the_whole_table() -> None:
    world = FeatureWorld()
    tracks = world.known(30)
    space = fit_space(tracks.features, tracks.steps, tracks.label)
    posterior, means = world.posterior, Sums.of(zero_views(world.posterior)).means()
    whole, _ = scores.score_table(space, posterior, means)
    used = np.isin(SCORES, ("neighbours", "top_logit"))
    some, _ = scores.score_table(space, posterior, means, used)
    np.testing.assert_array_equal(some, np.where(used, whole, 0.0))
    assert (whole[:, ~used] != 0.0).any()
