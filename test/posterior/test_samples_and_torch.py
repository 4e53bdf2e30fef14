"""Parameter samples and the float32 variance against the float64 posterior."""

import numpy as np
import pytest

from lla_fusion_ros.pmf import monte_carlo
from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.samples import parameter_cloud, parameter_deviations
from lla_fusion_ros.posterior.single_variance import ROWS, SingleVariance, row_blocks


def realistic_posterior(rng, networks=2, classes=3, features=6, prior=1e-2, temperature=1.5):
    """ReLU-like features, far from white: the smallest eigenvalue is the prior's."""
    mixing = rng.normal(size=(features // 2, features))
    phi = np.maximum(rng.normal(size=(networks, classes, 400, features // 2)) @ mixing, 0)
    phi[..., -1] = 1.0
    blocks = phi.swapaxes(-1, -2) @ phi * 0.1 + prior * np.eye(features)
    posterior = EnsemblePosterior(np.linalg.cholesky(blocks), prior, temperature)
    return posterior, phi[:, 0, :20].swapaxes(0, 1)  # [20, networks, features]


def test_parameter_samples_have_the_posterior_covariance():
    posterior, features = realistic_posterior(np.random.default_rng(0))
    deviations = parameter_deviations(posterior, samples=20_000)
    assert deviations.shape == (2, 20_000, 3, 6)
    shifts = np.einsum("ncd,ckmd->nckm", features, deviations)
    np.testing.assert_allclose(shifts.var(axis=2), posterior.variance(features), rtol=0.05)
    np.testing.assert_allclose(shifts.mean(axis=2), 0, atol=0.03)


def test_sampling_parameters_and_sampling_logits_give_the_same_pmf():
    rng = np.random.default_rng(1)
    posterior, features = realistic_posterior(rng)
    logits = rng.normal(size=(20, 2, 3))
    cloud = parameter_cloud(logits, features, parameter_deviations(posterior, samples=20_000))
    expected = monte_carlo(logits, posterior.variance(features), samples=4096).pmf
    assert cloud.points.shape == (20, 2, 20_000, 3)
    np.testing.assert_allclose(cloud.pmf, expected, atol=0.01)


def test_views_of_one_network_share_their_parameter_sample():
    rng = np.random.default_rng(2)
    posterior, features = realistic_posterior(rng)
    deviations = parameter_deviations(posterior, samples=8)
    twice = np.stack([features[0], features[0]])
    points = parameter_cloud(np.zeros((2, 2, 3)), twice, deviations).points
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(deviations, parameter_deviations(posterior, samples=8))


@pytest.mark.parametrize("cross", [False, True])
def test_sampled_logits_of_all_views_and_networks_have_the_covariance_r(cross):
    """Eq. fusion_prud_is: one parameter sample for all views is a sample of the stacked zeta."""
    rng = np.random.default_rng(6)
    phi = rng.normal(size=(50, 2, 4))
    phi[:, 1] += phi[:, 0]
    total = CrossSum(2, 3, 4)
    total.add(rng.normal(size=(50, 2, 3)), phi)
    posterior = total.finish(0.5) if cross else total.finish(0.5).independent()
    views = rng.normal(size=(3, 2, 4))
    shifts = np.einsum("lcd,ckmd->mclk", views, parameter_deviations(posterior, samples=40_000))
    stacked = shifts.reshape(3, 6, -1)  # networks outermost, then views
    sampled = stacked @ stacked.swapaxes(-1, -2) / 40_000
    expected = posterior.joint_covariance(views)
    np.testing.assert_allclose(sampled, expected, atol=0.03 * expected.max())


def test_temperature_zero_means_no_deviation():
    posterior, _ = realistic_posterior(np.random.default_rng(3))
    assert (parameter_deviations(posterior.with_temperature(0.0), 4) == 0).all()


@pytest.mark.parametrize("features", [6, ROWS, ROWS + 1, 2 * ROWS, 85, 195])
def test_float32_variances_agree_with_float64(features):
    posterior, phi = realistic_posterior(np.random.default_rng(4), features=features)
    single = SingleVariance(posterior)(phi)
    assert single.shape == (20, 2, 3)
    np.testing.assert_allclose(single, posterior.variance(phi), rtol=2e-3)
    assert SingleVariance(posterior)(np.zeros((0, 2, features))).shape == (0, 2, 3)


@pytest.mark.parametrize("features", [6, ROWS + 1, 2 * ROWS, 85])
def test_row_blocks_begin_at_cache_lines_and_hold_every_row_once(features):
    posterior, _ = realistic_posterior(np.random.default_rng(7), features=features)
    first, *others = row_blocks(posterior)
    assert all(block.ctypes.data % 64 == 0 for block in (first, *others))
    assert all(block.shape[2] == ROWS * posterior.classes <= first.shape[2] for block in others)
    assert sum(block.shape[2] for block in (first, *others)) == features * posterior.classes
