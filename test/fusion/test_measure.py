"""What views tell about themselves, against the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from lla_fusion_ros.fusion.measure import LOWEST_LOGIT, MeasuredViews, measured, quality_features
from lla_fusion_ros.types.views import Views
from support.tiny_posterior import make_posterior

POSTERIOR = make_posterior(3, 7, 40)


def views(count: int, dtype: type = np.float32, logit: float = 3.0, feature: float = 1.0) -> MeasuredViews:
    rng = np.random.default_rng(count)
    logits = logit * rng.normal(size=(count, 3, 7))
    features = feature * rng.normal(size=(count, 3, 40))
    return measured(Views(logits.astype(dtype), features.astype(dtype)), POSTERIOR)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("logit", [3.0, 2000.0])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_a_view_tells_is_what_the_plain_formulas_say(count, logit, dtype) -> None:
    found = views(count, dtype, logit)
    exact = found.logits.astype(np.float64)
    z = np.maximum(exact - exact.max(axis=-1, keepdims=True), LOWEST_LOGIT)
    p, mean = softmax(z, axis=-1), softmax(z, axis=-1).mean(axis=1)
    each = -(p * np.where(p > 0, log_softmax(z, axis=-1), 0.0)).sum(axis=-1)
    whole = -(mean * np.log(np.maximum(mean, 1e-300))).sum(axis=-1)
    centred = z - z.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(found.features.astype(np.float64), axis=-1)
    energy, disagreement = logsumexp(centred, axis=-1).mean(axis=1), np.maximum(whole - each.mean(axis=1), 0)
    expected = {
        "shifted": z,
        "centred": centred,
        "pmf": p,
        "log_pmf": log_softmax(z, axis=-1),
        "mean_pmf": mean,
        "mean_centred": centred.mean(axis=1),
        "entropy": whole,
        "network_entropy": each,
        "top": mean.argmax(axis=-1),
        "energy": energy,
        "log_norm": np.log(norms).mean(axis=1),
        "disagreement": disagreement,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_variances_in_single_precision_are_those_in_double_however_many_views() -> None:
    many = views(150)  # more than are taken at a time
    np.testing.assert_allclose(many.laplace_variance, POSTERIOR.variance(many.features), rtol=1e-5)
    under = POSTERIOR.with_prior(1e-3).with_temperature(1.0).variance(many.features)
    np.testing.assert_allclose(many.variance_under(1e-3), under, rtol=1e-5)
    precision, evidence = many.weighed_under(1e-3)
    np.testing.assert_allclose(precision, (1 / under).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(evidence, (many.centred / under).sum(axis=1), rtol=1e-4, atol=1e-4)
    of_top = POSTERIOR.variance(many.features)[np.arange(150), :, many.top]
    np.testing.assert_allclose(many.top_variance(), of_top, rtol=1e-5)


@pytest.mark.filterwarnings("error")
def test_huge_but_finite_numbers_are_bounded_without_a_warning() -> None:
    huge = views(3, np.float64, logit=1e307, feature=1e200)
    assert huge.shifted.min() >= LOWEST_LOGIT
    assert np.isfinite(quality_features(huge)).all() and np.isfinite(huge.laplace_variance).all()
    assert np.isfinite(huge.top_variance(1.0)).all()
