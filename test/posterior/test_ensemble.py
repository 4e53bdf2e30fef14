"""The last-layer posterior against dense matrices and autograd Jacobians."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import fit_last_layer
from lla_fusion_ros.types.errors import InputError

HEAD = ["head.weight", "head.bias"]


def features_of(ensemble, images):
    return ensemble(images)[1].detach().numpy()


def random_posterior(rng, networks=2, classes=3, features=4, temperature=1.0):
    data = rng.normal(size=(networks, classes, 20, features))
    blocks = data.swapaxes(-1, -2) @ data + np.eye(features)
    return EnsemblePosterior(np.linalg.cholesky(blocks), 1.0, temperature)


def test_variance_equals_j_p_jt_with_autograd_jacobians(ensemble, images, fresh, oracles):
    posterior = fit_last_layer(ensemble, [images], prior_precision=0.3).with_temperature(0.7)
    variance = posterior.variance(features_of(ensemble, fresh))
    for c, network in enumerate(ensemble.members):
        covariance = np.linalg.inv(oracles.fisher(network, HEAD, images) + 0.3 * np.eye(24))
        for n, image in enumerate(fresh):
            j = oracles.jacobian(network, HEAD, image)
            oracle = 0.7 * j @ covariance @ j.T
            np.testing.assert_allclose(variance[n, c], np.diag(oracle), rtol=1e-10)
            off_diagonal = oracle - np.diag(np.diag(oracle))
            np.testing.assert_allclose(off_diagonal, 0, atol=1e-12)  # classes decouple exactly


def test_covariance_of_two_views_equals_j_p_jt(ensemble, images, fresh, oracles):
    posterior = fit_last_layer(ensemble, [images], prior_precision=0.3)
    features = features_of(ensemble, fresh)
    covariance = posterior.covariance(features[:3], features[3:])
    for c, network in enumerate(ensemble.members):
        inverse = np.linalg.inv(oracles.fisher(network, HEAD, images) + 0.3 * np.eye(24))
        for n in range(3):
            oracle = (
                oracles.jacobian(network, HEAD, fresh[n])
                @ inverse
                @ oracles.jacobian(network, HEAD, fresh[n + 3]).T
            )
            np.testing.assert_allclose(covariance[n, c, c], np.diag(oracle), rtol=1e-9, atol=1e-13)
    assert (covariance[:, 0, 1] == 0).all() and (covariance[:, 1, 0] == 0).all()


def test_rarity_is_minus_the_log_of_the_fisher_information_about_each_class(ensemble, images, oracles):
    expected = np.zeros(4)
    for network in ensemble.members:
        information = np.diag(oracles.fisher(network, HEAD, images))  # weights [4, 5], then biases [4]
        expected -= np.log(information[:20].reshape(4, 5).sum(axis=1) + information[20:])
    expected = (expected - expected.mean()) / expected.std()
    for prior in (0.3, 50.0):  # and neither prior nor temperature has a say
        posterior = fit_last_layer(ensemble, [images], prior)
        np.testing.assert_allclose(posterior.rarity, expected, rtol=1e-7)
        np.testing.assert_allclose(posterior.with_temperature(3.0).rarity, posterior.rarity)
    np.testing.assert_allclose(posterior.with_prior(7.0).rarity, expected, rtol=1e-6)


def test_classes_without_any_information_are_all_equally_rare():
    factors = np.broadcast_to(2.0 * np.eye(4), (2, 3, 4, 4))  # the prior alone
    np.testing.assert_array_equal(EnsemblePosterior(factors, 4.0).rarity, 0.0)


def test_footprints_give_variance_and_covariance(ensemble, images, fresh):
    posterior = fit_last_layer(ensemble, [images], 1.0).with_temperature(2.0)
    features = features_of(ensemble, fresh)
    prints = posterior.footprint(features)
    assert prints.shape == (6, 2, 4, 6)
    np.testing.assert_allclose(2.0 * (prints**2).sum(-1), posterior.variance(features), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), views=st.integers(1, 6), networks=st.integers(1, 3))
def test_joint_covariance_holds_every_pair_and_is_psd(seed, views, networks):
    rng = np.random.default_rng(seed)
    posterior = random_posterior(rng, networks=networks, temperature=rng.uniform(0, 3))
    features = rng.normal(size=(views, networks, 4))
    joint = posterior.joint_covariance(features)
    blocks = joint.reshape(3, networks, views, networks, views)
    for i in range(views):
        for j in range(views):
            pair = posterior.covariance(features[i], features[j])  # [networks, networks, classes]
            np.testing.assert_allclose(blocks[:, :, i, :, j].transpose(1, 2, 0), pair, atol=1e-12)
    assert np.linalg.eigvalsh(joint).min() > -1e-12


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), precision=st.floats(1e-4, 1e4))
def test_with_prior_changes_the_prior_and_nothing_else(seed, precision):
    rng = np.random.default_rng(seed)
    posterior = random_posterior(rng)
    other = posterior.with_prior(precision)
    block = posterior.factors[1, 2] @ posterior.factors[1, 2].T
    expected = block + (precision - 1.0) * np.eye(4)
    np.testing.assert_allclose(other.factors[1, 2] @ other.factors[1, 2].T, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.with_prior(1.0).factors, posterior.factors, rtol=1e-6, atol=1e-8)


def test_with_prior_survives_a_posterior_rounded_to_float32():
    rng = np.random.default_rng(0)
    data = 100 * rng.normal(size=(1, 1, 3, 8))  # 3 images, 8 features: the data term is singular
    blocks = data.swapaxes(-1, -2) @ data + 10.0 * np.eye(8)
    rounded = EnsemblePosterior(np.linalg.cholesky(blocks).astype(np.float32), 10.0)
    looser = rounded.with_prior(1e-4)
    assert (looser.variance(rng.normal(size=(5, 1, 8))) > 0).all()


def test_a_tighter_prior_shrinks_every_variance():
    rng = np.random.default_rng(3)
    posterior = random_posterior(rng)
    features = rng.normal(size=(10, 2, 4))
    assert (posterior.with_prior(5.0).variance(features) < posterior.variance(features)).all()


def test_select_keeps_the_chosen_networks_in_order():
    rng = np.random.default_rng(4)
    posterior = random_posterior(rng, networks=3)
    features = rng.normal(size=(5, 3, 4))
    chosen = posterior.select([2, 0])
    np.testing.assert_allclose(chosen.variance(features[:, [2, 0]]), posterior.variance(features)[:, [2, 0]])


def test_no_views_give_no_variances():
    posterior = random_posterior(np.random.default_rng(5))
    assert posterior.variance(np.empty((0, 2, 4))).shape == (0, 2, 3)


@pytest.mark.parametrize(
    ("factors", "temperature", "message"),
    [
        (np.ones((2, 3, 4)), 1.0, "shape"),
        (np.full((1, 1, 2, 2), np.nan), 1.0, "NaN"),
        (-np.eye(2)[None, None], 1.0, "not positive"),
        (np.eye(2)[None, None], -1.0, "temperature is -1"),
    ],
)
def test_a_broken_posterior_is_refused_with_its_cause(factors, temperature, message):
    with pytest.raises(InputError, match=message):
        EnsemblePosterior(factors, 1.0, temperature)


def test_wrong_features_and_networks_are_refused_with_the_shape():
    posterior = random_posterior(np.random.default_rng(6))
    with pytest.raises(InputError, match=r"\[\.\.\., 2, 4\]"):
        posterior.variance(np.ones((3, 2, 5)))
    with pytest.raises(InputError, match="ensemble of 2"):
        posterior.select([0, 2])
    with pytest.raises(InputError, match="prior precision is 0"):
        posterior.with_prior(0)
