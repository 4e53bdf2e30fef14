"""The coupled curvatures against the Hessian of the loss, in contrasts."""

import numpy as np
import pytest
import torch

from lla_fusion_ros.posterior.fit import fit_last_layer
from lla_fusion_ros.posterior.full import FullSum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import monte_carlo_joint

HEAD = ["head.weight", "head.bias"]
CENTRE = np.eye(4) - np.full((4, 4), 0.25)


def features_of(ensemble, images):
    return ensemble(images)[1].detach().numpy()


def test_full_agrees_with_the_dense_ggn_from_autograd(ensemble, images, fresh, oracles):
    posterior = fit_last_layer(ensemble, [images], 0.3, curvature="full").with_temperature(1.5)
    features = features_of(ensemble, fresh)
    own = posterior.logit_covariance(features)
    between = posterior.logit_covariance(features[:3], features[3:])
    for c, network in enumerate(ensemble.members):
        covariance = np.linalg.inv(oracles.hessian_of_cross_entropy(network, HEAD, images) + 0.3 * np.eye(24))
        rows = [oracles.jacobian(network, HEAD, image) for image in fresh]
        for n, j in enumerate(rows):
            np.testing.assert_allclose(own[n, c], 1.5 * CENTRE @ j @ covariance @ j.T @ CENTRE, atol=1e-10)
        for n in range(3):
            oracle = 1.5 * CENTRE @ rows[n] @ covariance @ rows[n + 3].T @ CENTRE
            np.testing.assert_allclose(between[n, c], oracle, atol=1e-10)
    np.testing.assert_allclose(posterior.variance(features), np.diagonal(own, axis1=-2, axis2=-1))


def test_the_common_mode_that_full_removes_is_huge(ensemble, images, fresh, oracles):
    """Why contrasts: a loose prior inflates raw variances without end, contrasts hardly move."""
    network, j = ensemble.members[0], oracles.jacobian(ensemble.members[0], HEAD, fresh[0])
    curvature = oracles.hessian_of_cross_entropy(network, HEAD, images)
    raw = [np.diag(j @ np.linalg.inv(curvature + p * np.eye(24)) @ j.T).mean() for p in (1e-1, 1e-4)]
    features = features_of(ensemble, fresh)
    tight, loose = (
        fit_last_layer(ensemble, [images], p, curvature="full").variance(features)[0, 0].mean()
        for p in (1e-1, 1e-4)
    )
    assert raw[1] > 100 * raw[0]
    assert loose < 30 * tight


def test_contrast_covariances_have_no_common_mode_and_give_a_pmf(ensemble, images, fresh):
    for curvature in ("full", "kron"):
        posterior = fit_last_layer(ensemble, [images], 0.3, curvature=curvature)
        logits, features = (array.detach().numpy() for array in ensemble(fresh))
        covariance = posterior.logit_covariance(features)
        np.testing.assert_allclose(covariance.sum(-1), 0, atol=1e-12)
        cloud = monte_carlo_joint(logits, covariance)
        np.testing.assert_allclose(cloud.pmf.sum(-1), 1)
        shifted = monte_carlo_joint(logits + 7.0, covariance)
        np.testing.assert_allclose(shifted.pmf, cloud.pmf, rtol=1e-10)


def test_kron_equals_full_where_the_curvature_is_one_kronecker_product(ensemble, fresh):
    """Copies of one image: the sum over images is exactly Lambda (x) phi phi^T."""
    copies = fresh[:1].repeat(9, 1)
    features = features_of(ensemble, fresh)
    full = fit_last_layer(ensemble, [copies], 0.2, curvature="full").logit_covariance(features)
    kron = fit_last_layer(ensemble, [copies], 0.2, curvature="kron").logit_covariance(features)
    np.testing.assert_allclose(kron, full, atol=1e-10)


def test_kron_equals_its_dense_matrix(ensemble, images, fresh):
    posterior = fit_last_layer(ensemble, [images], 0.2, curvature="kron")
    logits, phi = (array.detach().numpy() for array in ensemble(images))
    pmf = torch.softmax(torch.as_tensor(logits), -1).numpy()[:, 1]
    output = np.mean([np.diag(p) - np.outer(p, p) for p in pmf], axis=0)
    dense = np.kron(output, phi[:, 1].T @ phi[:, 1]) + 0.2 * np.eye(24)
    features = features_of(ensemble, fresh)
    for n in range(len(fresh)):
        j = np.kron(np.eye(4), features[n, 1][None])
        oracle = CENTRE @ j @ np.linalg.inv(dense) @ j.T @ CENTRE
        np.testing.assert_allclose(posterior.logit_covariance(features)[n, 1], oracle, atol=1e-10)


@pytest.mark.parametrize("curvature", ["full", "kron"])
def test_prior_and_selection_behave_as_a_fresh_fit(ensemble, images, fresh, curvature):
    features = features_of(ensemble, fresh)
    posterior = fit_last_layer(ensemble, [images], 0.2, curvature=curvature)
    refitted = fit_last_layer(ensemble, [images], 2.0, curvature=curvature)
    np.testing.assert_allclose(posterior.with_prior(2.0).variance(features), refitted.variance(features))
    second = posterior.select([1])
    assert (second.networks, second.classes, second.features) == (1, 4, 6)
    np.testing.assert_allclose(second.variance(features[:, [1]]), posterior.variance(features)[:, [1]])
    with pytest.raises(InputError, match=r"expected \[\.\.\., 2, 6\]"):
        posterior.variance(features[:, :1])


def test_a_full_curvature_that_would_not_fit_in_memory_is_refused():
    with pytest.raises(InputError, match="use curvature 'kron'"):
        FullSum(1, 100, 257)
