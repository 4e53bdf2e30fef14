"""Class probabilities against numerical integration and a million samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import (
    about_classes,
    among_named,
    decide,
    entropy,
    max_shift,
    monte_carlo,
    monte_carlo_joint,
    mutual_information,
    percent,
    prob_largest,
    probit,
    risk,
    softmax,
)


def race(mean, deviation):
    """E[softmax(z)] for independent Gaussian z, exactly: softmax(z) is the chance of each class to win a race
    of z + Gumbel noise, so E[p_k] = integral of f_k(t) prod_{i != k} F_i(t) over t.  [classes]"""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    t = np.linspace(mean.min() - 8 * deviation.max() - 5, mean.max() + 8 * deviation.max() + 30, 1000)
    offset = t[:, None, None] - mean[:, None] - deviation[:, None] * nodes  # [t, classes, nodes]
    decay = np.exp(-np.clip(offset, -30, 700))
    weights = weights / weights.sum()
    log_cdf = np.log(np.maximum((np.exp(-decay) * weights).sum(-1), 1e-300))
    density = (decay * np.exp(-decay) * weights).sum(-1)
    others = np.exp(log_cdf.sum(1, keepdims=True) - log_cdf)
    values = density * others
    return ((values[1:] + values[:-1]) / 2 * np.diff(t)[:, None]).sum(axis=0)


def cases(classes, count=8):
    rng = np.random.default_rng(classes)
    for _ in range(count):
        mean, deviation = 2 * rng.normal(size=classes), np.sqrt(rng.uniform(0.5, 1.5, classes))
        yield mean, deviation, race(mean, deviation)


def total_variation(p, q):
    return 0.5 * np.abs(p - q).sum()


@pytest.mark.parametrize(
    ("classes", "mean_64", "worst_64", "worst_1024", "mean_probit", "worst_probit"),
    [
        (3, 0.010, 0.025, 0.002, 0.03, 0.05),
        (10, 0.012, 0.025, 0.002, 0.03, 0.05),
        (43, 0.02, 0.04, 0.004, 0.06, 0.08),
    ],
)
def test_pmfs_against_the_gaussian_gumbel_race(
    classes, mean_64, worst_64, worst_1024, mean_probit, worst_probit
):
    """Total variation at a variance near one."""
    errors = []
    for mean, deviation, exact in cases(classes):
        assert exact.sum() == pytest.approx(1, abs=1e-6)
        errors.append(
            [
                total_variation(monte_carlo(mean, deviation**2).pmf, exact),
                total_variation(monte_carlo(mean, deviation**2, samples=1024).pmf, exact),
                total_variation(probit(mean, deviation**2), exact),
            ]
        )
    mean_error, worst = np.mean(errors, axis=0), np.max(errors, axis=0)
    assert mean_error[0] < mean_64 and worst[0] < worst_64
    assert worst[1] < worst_1024
    assert mean_error[2] < mean_probit and worst[2] < worst_probit


def test_monte_carlo_against_a_million_random_samples():
    rng = np.random.default_rng(0)
    mean, deviation = rng.normal(size=5), np.array([0.2, 1.0, 2.0, 0.5, 3.0])
    points = softmax(mean + deviation * rng.standard_normal((1_000_000, 5)))
    cloud = monte_carlo(mean, deviation**2, samples=2048)
    np.testing.assert_allclose(cloud.pmf, points.mean(0), atol=2e-3)
    largest = np.bincount(points.argmax(1), minlength=5) / 1e6
    np.testing.assert_allclose(prob_largest(cloud), largest, atol=5e-3)
    expected = entropy(points.mean(0)) - entropy(points).mean()
    assert mutual_information(cloud) == pytest.approx(expected, abs=5e-3)
    deciding = np.stack([points[points.argmax(1) == m].sum(0) for m in range(5)]) / 1e6
    np.testing.assert_allclose(risk(cloud), deciding, atol=5e-3)


def test_correlated_logits_against_a_million_random_samples():
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(4, 2))  # rank 2: singular
    mean = rng.normal(size=4)
    points = softmax(mean + rng.standard_normal((1_000_000, 2)) @ factor.T)
    cloud = monte_carlo_joint(mean, factor @ factor.T, samples=2048)
    np.testing.assert_allclose(cloud.pmf, points.mean(0), atol=3e-3)


def test_a_diagonal_covariance_is_a_variance():
    mean, variance = np.array([1.0, 0.0, -2.0]), np.array([0.5, 2.0, 1.0])
    np.testing.assert_allclose(
        monte_carlo_joint(mean, np.diag(variance), 1024).pmf, monte_carlo(mean, variance, 1024).pmf, atol=3e-3
    )


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(-1e6, 1e6), scale=st.floats(0, 50))
def test_a_constant_added_to_all_logits_changes_nothing(seed, shift, scale):
    rng = np.random.default_rng(seed)
    mean, variance = scale * rng.normal(size=(2, 6)), rng.uniform(0, 4, size=(2, 6))
    covariance = np.einsum("...i,ij->...ij", variance, np.eye(6))
    for pmf in (
        lambda z: softmax(z),
        lambda z: probit(z, variance),
        lambda z: monte_carlo(z, variance).pmf,
        lambda z: monte_carlo_joint(z, covariance).pmf,
    ):
        np.testing.assert_allclose(pmf(mean + shift), pmf(mean), atol=1e-8)
        np.testing.assert_allclose(pmf(mean).sum(-1), 1)


def test_probit_without_the_shift_would_change_the_winner():
    """Why the max shift comes first: the bare formula depends on a constant that softmax ignores."""
    mean, variance = np.array([0.0, 0.5]), np.array([0.1, 8.0])
    bare = softmax((mean + 10) / np.sqrt(1 + np.pi / 8 * variance))
    assert bare.argmax() == 0
    assert probit(mean + 10, variance).argmax() == 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_more_variance_never_makes_probit_surer_and_keeps_its_winner(seed):
    rng = np.random.default_rng(seed)
    mean, variance = 5 * rng.normal(size=8), rng.uniform(0, 10, 8)
    assert probit(mean, variance).max() <= softmax(mean).max() + 1e-12
    assert probit(mean, variance).argmax() == mean.argmax()


def test_equal_inputs_give_equal_outputs():
    mean, variance = np.array([0.3, 0.1]), np.array([1.0, 2.0])
    first, second = monte_carlo(mean, variance, 50), monte_carlo(mean, variance, 50)
    np.testing.assert_array_equal(first.points, second.points)
    assert first.points.shape == (50, 2)


def test_no_variance_means_softmax_and_no_mutual_information():
    mean = np.array([[1.0, 0.0, -1.0]])
    cloud = monte_carlo(mean, np.zeros((1, 3)))
    np.testing.assert_allclose(cloud.pmf, softmax(mean))
    np.testing.assert_allclose(probit(mean, np.zeros((1, 3))), softmax(mean))
    assert mutual_information(cloud)[0] == pytest.approx(0, abs=1e-12)


def test_softmax_of_huge_logits_does_not_overflow():
    np.testing.assert_array_equal(softmax(np.array([1e300, -1e300])), [1.0, 0.0])
    assert max_shift(np.array([3.0, 5.0])).tolist() == [-2.0, 0.0]


def test_entropy_of_certainty_and_of_ignorance():
    assert entropy(np.array([1.0, 0.0])) == 0
    assert entropy(np.full(4, 0.25)) == pytest.approx(np.log(4))


def test_risk_adds_up_to_the_pmf_and_to_prob_largest():
    rng = np.random.default_rng(2)
    cloud = monte_carlo(rng.normal(size=(7, 5)), rng.uniform(0, 4, size=(7, 5)))
    matrix = risk(cloud)  # [7, decided, true]
    np.testing.assert_allclose(matrix.sum(axis=-2), cloud.pmf)
    np.testing.assert_allclose(matrix.sum(axis=-1), prob_largest(cloud))
    np.testing.assert_allclose(matrix.sum(axis=(-1, -2)), 1)


def test_the_decision_of_least_expected_cost_need_not_be_the_most_probable_class():
    pmf = np.array([0.9, 0.1])  # "no stop sign", "stop sign"
    cost = np.array([[0.0, 100.0], [1.0, 0.0], [3.0, 3.0]])  # go, stop, ask
    decision, expected = decide(pmf, cost)
    assert decision == 1 and expected == pytest.approx(0.9)
    decision, _ = decide(np.array([[0.999, 0.001], [0.5, 0.5]]), cost)
    assert decision.tolist() == [0, 1]


def test_zero_one_cost_decides_for_the_most_probable_class():
    pmf = np.random.default_rng(3).dirichlet(np.ones(6), size=20)
    decision, expected = decide(pmf, 1 - np.eye(6))
    np.testing.assert_array_equal(decision, pmf.argmax(1))
    np.testing.assert_allclose(expected, 1 - pmf.max(1))


def test_what_is_no_distribution_is_refused_with_the_cause():
    with pytest.raises(InputError, match=r"variance is negative \(-1\)"):
        monte_carlo(np.zeros(2), np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="variance is negative"):
        probit(np.zeros(2), np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="variance is negative"):
        monte_carlo_joint(np.zeros(2), np.diag([1.0, -1.0]))
    with pytest.raises(InputError, match="not positive semidefinite"):
        monte_carlo_joint(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="NaN or infinity"):
            monte_carlo(np.array([0.0, bad]), np.ones(2))
        with pytest.raises(InputError, match="NaN or infinity"):
            probit(np.zeros(2), np.array([1.0, bad]))
    with pytest.raises(InputError, match="samples is 0"):
        monte_carlo(np.zeros(2), np.ones(2), samples=0)
    with pytest.raises(InputError, match=r"expected \[decisions, 2\]"):
        decide(np.array([0.5, 0.5]), np.eye(3))
    with pytest.raises(InputError, match="NaN"):
        decide(np.array([0.5, 0.5]), np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("p", "told"),
    [(0.0, "0%"), (0.504, "50%"), (0.994, "99%"), (0.9951, ">99%"), (0.99999, ">99%"), (1.0, "100%")],
)
def test_only_what_is_certain_is_a_hundred_per_cent(p, told) -> None:
    assert percent(p) == told


def test_reserved_outcomes_are_left_out_or_say_nothing_of_the_classes():
    pmf = np.array([[0.6, 0.2, 0.2], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(among_named(pmf, 1), [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(about_classes(pmf, 1), [[0.7, 0.3], [0.5, 0.5]])
    assert among_named(pmf, 0) is about_classes(pmf, 0) is pmf
