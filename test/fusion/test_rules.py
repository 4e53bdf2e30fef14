"""Each rule against its formula, written out the slow way."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.measure import measured, quality_features
from lla_fusion_ros.types.pmf import entropy, monte_carlo_joint, probit, softmax
from lla_fusion_ros.types.views import Views
from support.tiny_posterior import make_posterior, make_views

POSTERIOR = make_posterior()
VIEWS = [make_views(POSTERIOR, 1, seed, scale=1.5) for seed in range(4)]
LOGITS = np.stack([v.logits[0] for v in VIEWS])  # [views, networks, classes]
FEATURES = np.stack([v.features[0] for v in VIEWS])
PMF = softmax(LOGITS)
MEAN_PMF = PMF.mean(axis=1)  # [views, classes]


def fused(name: str, values=None, posterior=POSTERIOR) -> np.ndarray:
    fuser = make_fuser(name, posterior, values)
    state = fuser.initial(1)
    for view in VIEWS:
        state = fuser.update(state, view)
    return fuser.predict(state)[0]


def normalised(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum()


def test_last_is_the_newest_view() -> None:
    np.testing.assert_allclose(fused("last"), MEAN_PMF[-1], rtol=1e-12)


def test_mean_pmf_is_the_mean_over_views_and_networks() -> None:
    np.testing.assert_allclose(fused("mean_pmf"), PMF.mean(axis=(0, 1)), rtol=1e-12)


def test_vote_counts_first_places() -> None:
    counts = np.bincount(MEAN_PMF.argmax(axis=1), minlength=4)
    np.testing.assert_allclose(fused("vote", {"pseudo_count": 0.5}), normalised(counts + 0.5), rtol=1e-12)


def test_ema_filters_from_the_first_view_on() -> None:
    expected = MEAN_PMF[0]
    for pmf in MEAN_PMF[1:]:
        expected = 0.8 * expected + 0.2 * pmf
    np.testing.assert_allclose(fused("ema", {"beta": 0.2}), expected, rtol=1e-12)


def test_log_odds_sums_those_of_the_first_class_only() -> None:
    total = np.zeros(4)
    for pmf in MEAN_PMF:
        total[pmf.argmax()] += np.log(pmf.max() / (1 - pmf.max()))
    np.testing.assert_allclose(fused("log_odds"), softmax(total), rtol=1e-12)


def test_product_multiplies_all_pmfs() -> None:
    np.testing.assert_allclose(fused("product"), normalised(PMF.prod(axis=(0, 1))), rtol=1e-10)


def test_log_linear_is_a_product_with_weights_that_sum_to_one() -> None:
    weights = np.array([2.0, 1.0, 1.0])
    powers = PMF ** (weights / weights.sum() / len(VIEWS))[None, :, None]
    np.testing.assert_allclose(
        fused("log_linear", {"weights": weights.tolist()}), normalised(powers.prod(axis=(0, 1))), rtol=1e-10
    )


def test_mc_product_multiplies_the_mean_pmf_under_sampled_parameters() -> None:
    """Against fresh parameter samples: the fixed ones are a fair draw from the posterior."""
    rng = np.random.default_rng(1)
    samples = 4000
    covariance = POSTERIOR.temperature * np.linalg.inv(POSTERIOR.factors @ POSTERIOR.factors.swapaxes(-1, -2))
    log_product = np.zeros(4)
    for c in range(3):
        theta = np.stack(
            [rng.multivariate_normal(np.zeros(6), covariance[c, m], samples) for m in range(4)], axis=1
        )  # [samples, classes, features]
        for view in range(len(VIEWS)):
            logits = LOGITS[view, c] + theta @ FEATURES[view, c]
            log_product += np.log(softmax(logits).mean(axis=0))
    np.testing.assert_allclose(fused("mc_product", {"samples": 4096}), softmax(log_product), atol=0.02)


def test_pool_is_the_tempered_entropy_weighted_linear_pool() -> None:
    gamma, alpha, temperature, view_temperature = 1.7, 0.4, 0.8, 1.5
    scaled = softmax(LOGITS / view_temperature).mean(axis=1)
    weight = np.exp(-gamma * entropy(scaled))
    s = np.log((weight[:, None] * scaled).sum(axis=0) / weight.sum())
    values = {
        "gamma": gamma,
        "alpha": alpha,
        "temperature": temperature,
        "view_temperature": view_temperature,
    }
    np.testing.assert_allclose(fused("pool", values), softmax(s * 4**alpha / temperature), rtol=1e-10)


@pytest.mark.parametrize("cross", [False, True])
def test_ella_is_the_weighted_sum_of_jointly_gaussian_views(cross) -> None:
    """Mean and variance of sum w z over the joint Gaussian of all views, R written out."""
    posterior = make_posterior(cross=cross)
    fuser = make_fuser("ella", posterior, {"weights": [0.5, 0.3, 0.2]})
    state = fuser.initial(1)
    for view in VIEWS:
        state = fuser.update(state, view)
    mean, variance = fuser.gaussian(state)  # type: ignore[attr-defined]
    weights = np.repeat([0.5, 0.3, 0.2], 4) / 4  # rows: networks first, then views
    expected = np.einsum("r,rm->m", weights, LOGITS.transpose(1, 0, 2).reshape(12, 4))
    assert np.ptp(mean[0] - expected) < 1e-10  # equal up to the gauge
    joint = posterior.joint_covariance(FEATURES)
    np.testing.assert_allclose(variance[0], np.einsum("r,mrs,s->m", weights, joint, weights), rtol=1e-6)


def test_ella_by_inverse_covariance_trusts_the_surer_network() -> None:
    sure, unsure = make_posterior(networks=1, seed=1), make_posterior(networks=1, seed=1)
    factors = np.concatenate([10 * sure.factors, unsure.factors])
    posterior = type(sure)(factors, 1.0)
    view = make_views(posterior, 1)
    plain, by_covariance = (
        fuser.gaussian(fuser.update(fuser.initial(1), view))[0][0]  # type: ignore[attr-defined]
        for fuser in (make_fuser("ella", posterior), make_fuser("ella", posterior, {"delta": 1.0}))
    )
    centred = view.logits[0] - view.logits[0].mean(axis=-1, keepdims=True)
    assert np.linalg.norm(by_covariance - centred[0]) < 0.1 * np.linalg.norm(plain - centred[0])


def test_ella_mixture_is_the_mean_of_the_views_laplace_pmfs() -> None:
    expected = probit(LOGITS, POSTERIOR.variance(FEATURES)).mean(axis=(0, 1))
    np.testing.assert_allclose(fused("ella_mixture"), expected, rtol=1e-6)


def test_ella_mixture_by_sampling_is_close_to_its_closed_form() -> None:
    np.testing.assert_allclose(fused("ella_mixture", {"samples": 1024}), fused("ella_mixture"), atol=0.03)


def test_wls_robust_is_the_weighted_mean_of_centred_logits() -> None:
    gamma, alpha, temperature, prior = 0.7, 0.5, 1.3, 0.01
    variance = POSTERIOR.with_prior(prior).with_temperature(1.0).variance(FEATURES)
    weight = np.exp(-gamma * entropy(MEAN_PMF))[:, None, None] / variance
    centred = LOGITS - LOGITS.mean(axis=-1, keepdims=True)
    s = (weight * centred).sum(axis=(0, 1)) / weight.sum(axis=(0, 1))
    values = {"gamma": gamma, "alpha": alpha, "temperature": temperature, "prior": prior}
    np.testing.assert_allclose(fused("wls_robust", values), softmax(s * 4**alpha / temperature), rtol=1e-5)


def test_hybrid_has_its_two_parts_as_limits() -> None:
    shared = {"gamma": 0.7, "alpha": 0.2}
    wls = fused("wls_robust", {**shared, "temperature": 1.4})
    ella = fused("ella_mixture", {**shared, "temperature": 0.9})
    temperatures = {"wls_temperature": 1.4, "ella_temperature": 0.9}
    np.testing.assert_allclose(fused("hybrid", {**shared, **temperatures, "mix": 1.0}), wls, rtol=1e-5)
    np.testing.assert_allclose(fused("hybrid", {**shared, **temperatures, "mix": 0.0}), ella, rtol=1e-5)


def test_reliability_weighs_views_by_their_standardised_quality_features() -> None:
    rng = np.random.default_rng(0)
    theta, center, scale = rng.normal(size=5), rng.normal(size=5), rng.uniform(1, 3, 5)
    features = np.concatenate([quality_features(measured(view, POSTERIOR)) for view in VIEWS])
    weight = np.exp((features - center) / scale @ theta)
    centred = (LOGITS - LOGITS.mean(axis=-1, keepdims=True)).mean(axis=1)
    s = (weight[:, None] * centred).sum(axis=0) / weight.sum()
    values = {"theta": theta.tolist(), "center": center.tolist(), "scale": scale.tolist(), "a": 0.4, "b": 0.3}
    expected = softmax(s * weight.sum() ** 0.4 * np.exp(-0.3))
    np.testing.assert_allclose(fused("reliability", values), expected, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(fusers()))
def test_the_pmf_along_a_track_equals_fusing_step_by_step(name) -> None:
    tracks, steps = 3, 4
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(tracks, steps, 3, 4))
    features = rng.normal(size=(tracks, steps, 3, 6))
    fuser = make_fuser(name, POSTERIOR)
    along = pmf_along(fuser, flat_views(POSTERIOR, logits, features), steps)
    state = fuser.initial(tracks)
    for step in range(steps):
        state = fuser.update(state, Views(logits[:, step], features[:, step]))
        np.testing.assert_allclose(along[:, step], fuser.predict(state), rtol=1e-9, atol=1e-12)
    some = pmf_along(fuser, flat_views(POSTERIOR, logits, features), steps, (3, 1))
    np.testing.assert_array_equal(some, along[:, [2, 0]])


def test_ella_by_sampling_agrees_with_samples_of_the_joint_gaussian() -> None:
    """Eq. fusion_prud_is and multimodality as printed: sample zeta, weigh, softmax, average."""
    joint = POSTERIOR.joint_covariance(FEATURES)  # [classes, 12, 12]
    rows = LOGITS.transpose(1, 0, 2).reshape(12, 4)
    full = np.zeros((48, 48))
    for m in range(4):
        full[m::4, m::4] = joint[m]
    pick = np.kron(np.full((1, 12), 1 / 12), np.eye(4))  # sum_lc w_lc W_lc
    cloud = monte_carlo_joint(pick @ rows.reshape(-1), pick @ full @ pick.T, 4096)
    np.testing.assert_allclose(fused("ella", {"samples": 4096}), cloud.pmf, atol=2e-3)
