"""Covariance between networks: positive semidefinite, and what refitting on resampled labels shows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import DiagonalSum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax


def fitted(rng, networks=3, classes=4, features=5, images=60, prior=0.1):
    total = CrossSum(networks, classes, features)
    phi = rng.normal(size=(images, networks, features))
    phi[:, 1:] += phi[:, :1]  # networks that see similar things
    logits = 2 * rng.normal(size=(images, networks, classes))
    total.add(logits, phi)
    return total.finish(prior), logits, phi


def test_cross_covariance_equals_the_formula_written_out():
    rng = np.random.default_rng(0)
    posterior, logits, phi = fitted(rng)
    mean = softmax(logits).mean(axis=1)
    eta = mean * (1 - mean)
    views = rng.normal(size=(3, 5))
    covariance = posterior.with_temperature(1.7).covariance(views, views)
    for m in range(4):
        weighted = phi * eta[:, m, None, None]
        for i in range(3):
            for j in range(3):
                a_i = weighted[:, i].T @ phi[:, i] + 0.1 * np.eye(5)
                a_j = weighted[:, j].T @ phi[:, j] + 0.1 * np.eye(5)
                b_ij = a_i if i == j else weighted[:, i].T @ phi[:, j]
                oracle = 1.7 * views[i] @ np.linalg.inv(a_i) @ b_ij @ np.linalg.inv(a_j) @ views[j]
                assert covariance[i, j, m] == pytest.approx(oracle, rel=1e-9, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), prior=st.floats(1e-4, 10), views=st.integers(1, 4))
def test_the_joint_matrix_is_positive_semidefinite(seed, prior, views):
    rng = np.random.default_rng(seed)
    posterior, *_ = fitted(rng, prior=prior, images=int(rng.integers(1, 40)))
    features = rng.normal(size=(views, 3, 5))
    for candidate in (posterior, posterior.with_prior(10 * prior), posterior.select([2, 0])):
        joint = candidate.joint_covariance(features[:, : candidate.networks])
        np.testing.assert_allclose(joint, joint.swapaxes(-1, -2), rtol=1e-12)
        values = np.linalg.eigvalsh(joint)
        assert values.min() > -1e-9 * values.max()


def test_the_joint_matrix_stays_psd_when_a_bundle_rounds_it_to_float32():
    rng = np.random.default_rng(7)
    total = CrossSum(2, 2, 5)
    phi = 1e3 * rng.normal(size=(200, 1, 5)).repeat(2, axis=1)  # two networks that see the same
    total.add(rng.normal(size=(200, 1, 2)).repeat(2, axis=1), phi)
    exact = total.finish(1e-6)
    assert exact.cross is not None
    rounded = replace(
        exact, factors=exact.factors.astype(np.float32), cross=exact.cross.astype(np.float32).astype(float)
    )
    views = 1e3 * rng.normal(size=(4, 2, 5))
    raw = exact.factors.astype(np.float32).astype(float)
    inverse = np.linalg.inv(raw)
    whitened = inverse[0] @ rounded.cross[0, 1] @ inverse[1].swapaxes(-1, -2)
    assert np.linalg.norm(whitened, 2, axis=(-1, -2)).max() > 1 + 1e-9  # rounding alone broke it
    values = np.linalg.eigvalsh(rounded.joint_covariance(views))
    assert values.min() > -1e-12 * values.max()
    np.testing.assert_allclose(rounded.covariance(views, views), exact.covariance(views, views), rtol=1e-4)


def test_why_eta_is_shared_each_networks_own_would_give_a_correlation_above_one():
    phi, logits = np.ones((30, 2, 1)), np.tile([[[2.0, 0.0], [1.0, 0.0]]], (30, 1, 1))  # two sure networks
    total = CrossSum(2, 2, 1)
    total.add(logits, phi)
    shared = total.finish(1e-9)
    own = DiagonalSum(2, 2, 1)
    own.add(logits, phi)
    apart = own.finish(1e-9)
    assert shared.cross is not None
    for posterior, lawful in ((apart, False), (shared, True)):
        correlation = shared.cross[0, 1] / (posterior.factors[0] * posterior.factors[1])  # L^-1 B L^-T, D = 1
        assert (correlation <= 1 + 1e-9).all() == lawful


def test_joint_covariance_agrees_with_pairs_of_views():
    rng = np.random.default_rng(2)
    posterior, *_ = fitted(rng)
    features = rng.normal(size=(2, 3, 5))
    blocks = posterior.joint_covariance(features).reshape(4, 3, 2, 3, 2)
    pair = posterior.covariance(features[0], features[1])
    np.testing.assert_allclose(blocks[:, :, 0, :, 1].transpose(1, 2, 0), pair, atol=1e-12)
    own = posterior.variance(features)
    np.testing.assert_allclose(np.einsum("mcici->icm", blocks), own, rtol=1e-10)


def test_independent_networks_have_no_cross_blocks():
    rng = np.random.default_rng(3)
    posterior, *_ = fitted(rng)
    features = rng.normal(size=(2, 3, 5))
    apart = posterior.independent()
    assert (apart.covariance(features[0], features[1])[~np.eye(3, dtype=bool)] == 0).all()
    np.testing.assert_allclose(apart.variance(features), posterior.variance(features))


def test_selecting_networks_takes_their_pairs():
    rng = np.random.default_rng(4)
    posterior, *_ = fitted(rng)
    features = rng.normal(size=(3, 5))
    whole = posterior.covariance(features, features)
    part = posterior.select([2, 0]).covariance(features[[2, 0]], features[[2, 0]])
    np.testing.assert_allclose(part, whole[np.ix_([2, 0], [2, 0])], rtol=1e-12)


def test_cross_blocks_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match="cross blocks have shape"):
        EnsemblePosterior(np.eye(3)[None, None], 1.0, cross=np.zeros((2, 1, 1, 3, 3)))


def refitted_weights(phi, labels, classes, prior):
    """Multinomial logistic regression by Newton's method, one fit per row of `labels`.  [fits, classes, D]"""
    images, size = phi.shape
    weights = np.zeros((len(labels), classes, size))
    products = (phi[:, :, None] * phi[:, None, :]).reshape(images, -1)
    diagonal = np.arange(classes)
    for _ in range(20):
        pmf = softmax(np.einsum("rmd,nd->rnm", weights, phi))
        gradient = np.einsum("rnm,nd->rmd", np.eye(classes)[labels] - pmf, phi) - prior * weights
        curvature = -pmf[..., :, None] * pmf[..., None, :]
        curvature[..., diagonal, diagonal] += pmf
        blocks = curvature.reshape(len(labels), images, -1).swapaxes(1, 2) @ products
        blocks = blocks.reshape(-1, classes, classes, size, size).transpose(0, 1, 3, 2, 4)
        hessian = blocks.reshape(len(labels), classes * size, -1) + prior * np.eye(classes * size)
        step = np.linalg.solve(hessian, gradient.reshape(len(labels), -1, 1)).reshape(weights.shape)
        weights += step
        if np.abs(step).max() < 1e-8:
            return weights
    raise AssertionError("Newton's method did not converge")


@pytest.mark.parametrize("seed", [0, 1])
def test_predicted_correlation_between_networks_matches_refits_on_resampled_labels(seed):
    """Three heads over fixed random features, refitted 250 times on labels drawn again from the truth."""
    rng = np.random.default_rng(seed)
    images, classes, networks, fits, prior = 500, 4, 3, 250, 0.1
    layers = [(rng.normal(size=(4, 9)), rng.normal(size=9)) for _ in range(networks)]

    def features_of(inputs):
        hidden = [np.maximum(inputs @ w + b, 0) / 2 for w, b in layers]
        return np.stack([np.c_[h, np.ones(len(inputs))] for h in hidden], axis=1)  # [n, networks, D]

    inputs = rng.normal(size=(images, 4))
    truth = softmax(inputs @ rng.normal(size=(4, classes)))
    labels = (rng.random((fits, images, 1)) > truth.cumsum(-1)).sum(-1).clip(0, classes - 1)
    phi, views = features_of(inputs), features_of(rng.normal(size=(8, 4)))
    weights = [refitted_weights(phi[:, c], labels, classes, prior) for c in range(networks)]

    total = CrossSum(networks, classes, phi.shape[2])
    total.add(np.stack([phi[:, c] @ weights[c][0].T for c in range(networks)], axis=1), phi)
    posterior = total.finish(prior)
    predicted = posterior.covariance(views, views)  # [views, networks, networks, classes]

    logits = np.stack([np.einsum("rmd,nd->rnm", weights[c], views[:, c]) for c in range(networks)])
    logits -= logits.mean(axis=1, keepdims=True)
    simulated = np.einsum("crnm,ernm->ncem", logits, logits) / fits

    def correlation(covariance):
        scale = np.sqrt(np.einsum("nccm->ncm", covariance))
        return (covariance / (scale[:, :, None] * scale[:, None])).mean(axis=(0, 3))  # [networks, networks]

    np.testing.assert_allclose(correlation(predicted), correlation(simulated), atol=0.1)
    assert correlation(simulated)[0, 1] > 0.3  # there is something to predict

    def variance_of_mean(covariance):
        return covariance.sum(axis=(1, 2)).mean() / networks**2

    understated = variance_of_mean(posterior.covariance(views, views)) / variance_of_mean(
        posterior.independent().covariance(views, views)
    )
    seen = variance_of_mean(simulated) / (
        np.einsum("nccm->", simulated) / simulated[:, 0, 0].size / networks**2
    )
    assert understated == pytest.approx(seen, rel=0.2)
    assert understated > 1.5  # assuming independence would claim that much less variance
