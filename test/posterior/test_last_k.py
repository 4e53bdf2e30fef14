"""The last k layers against dense matrices from autograd."""

import numpy as np
import pytest
import torch
from torch import nn

from lla_fusion_ros.networks.network import SplitNetwork
from lla_fusion_ros.posterior.fit import fit_last_layer
from lla_fusion_ros.posterior.last_k import fit_last_k, last_layers
from lla_fusion_ros.types.errors import InputError

BOTH = ["trunk.0.weight", "trunk.0.bias", "head.weight", "head.bias"]
CENTRE = np.eye(4) - np.full((4, 4), 0.25)


def test_layers_are_counted_from_the_end(ensemble):
    assert last_layers(ensemble.members[0], 1) == ("head.weight", "head.bias")
    assert last_layers(ensemble.members[0], 2) == tuple(BOTH)
    with pytest.raises(InputError, match="last 3 layers of a network that has 2"):
        last_layers(ensemble.members[0], 3)


def test_two_layers_equal_the_dense_reference(ensemble, images, fresh, oracles):
    network = ensemble.members[0]
    posterior = fit_last_k(network, images.split(9), 2, 0.4).with_temperature(1.3)
    inverse = np.linalg.inv(oracles.fisher(network, BOTH, images) + 0.4 * np.eye(44))
    rows = [oracles.jacobian(network, BOTH, image) for image in fresh]
    own = posterior.covariance(fresh)
    for n, j in enumerate(rows):
        np.testing.assert_allclose(own[n], 1.3 * j @ inverse @ j.T, rtol=1e-8, atol=1e-12)
    stacked = np.concatenate(rows)
    np.testing.assert_allclose(
        posterior.joint_covariance(fresh), 1.3 * stacked @ inverse @ stacked.T, rtol=1e-8, atol=1e-12
    )
    between = posterior.covariance(fresh[:3], fresh[3:])
    np.testing.assert_allclose(between[1], 1.3 * rows[1] @ inverse @ rows[4].T, rtol=1e-8, atol=1e-12)


def test_full_curvature_equals_the_dense_ggn(ensemble, images, fresh, oracles):
    network = ensemble.members[0]
    posterior = fit_last_k(network, [images], 2, 0.4, curvature="full")
    ggn = np.zeros((44, 44))
    for image in images:
        p = torch.softmax(network(image[None])[0], 0).detach().numpy()
        j = oracles.jacobian(network, BOTH, image)
        ggn += j.T @ (np.diag(p) - np.outer(p, p)) @ j
    j = oracles.jacobian(network, BOTH, fresh[0])
    oracle = CENTRE @ j @ np.linalg.inv(ggn + 0.4 * np.eye(44)) @ j.T @ CENTRE
    np.testing.assert_allclose(posterior.covariance(fresh[:1])[0], oracle, rtol=1e-7, atol=1e-10)
    joint = posterior.joint_covariance(fresh[:2])
    np.testing.assert_allclose(joint[:4, :4], oracle, rtol=1e-7, atol=1e-10)


def test_one_layer_equals_the_fast_last_layer_posterior(ensemble, images, fresh):
    fast = fit_last_layer(ensemble, [images], 0.4)
    slow = fit_last_k(ensemble.members[1], [images], 1, 0.4)
    variance = fast.variance(ensemble(fresh)[1].detach().numpy())[:, 1]
    np.testing.assert_allclose(np.diagonal(slow.covariance(fresh), axis1=1, axis2=2), variance, rtol=1e-9)


def test_a_network_with_batch_norm_and_convolutions_works():
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5))
    network = SplitNetwork(trunk, 5, 3)
    posterior = fit_last_k(network, [(torch.randn(8, 3, 4, 4), torch.zeros(8))], 2, 1.0)
    covariance = posterior.covariance(torch.randn(2, 3, 4, 4))
    assert (np.linalg.eigvalsh(covariance) > 0).all()


def test_impossible_requests_name_their_cause(ensemble, images):
    network = ensemble.members[0]
    with pytest.raises(InputError, match="loader is empty"):
        fit_last_k(network, [], 1, 1.0)
    with pytest.raises(InputError, match="prior precision is 0"):
        fit_last_k(network, [images], 1, 0.0)
    with pytest.raises(InputError, match="curvature is 'kron'"):
        fit_last_k(network, [images], 1, 1.0, curvature="kron")
    with pytest.raises(InputError, match="lower k"):
        fit_last_k(nn.Sequential(nn.Linear(200, 100)), [images], 1, 1.0)
