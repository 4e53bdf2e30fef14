"""Whatever finite numbers networks put out, everything that is published is finite and a distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.engine import FrameResult, FusionEngine, Observation
from lla_fusion_ros.pmf import monte_carlo, monte_carlo_joint, probit, softmax
from lla_fusion_ros.resources import find_model
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.views import Views

LARGE = (0.0, 1e-300, 1e4, 1e20, 3e38, 1e300, 1.7e308)
single = st.floats(width=32, allow_nan=False, allow_infinity=False)
double = st.floats(allow_nan=False, allow_infinity=False)

# numpy says where a difference overflowed to -inf; its exponential is 0, as it should be
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(find_model("signworld"))


def check_pmf(pmf: np.ndarray, tolerance: float = 1e-9) -> None:
    assert np.isfinite(pmf).all() and (pmf >= 0).all()
    np.testing.assert_allclose(pmf.sum(axis=-1), 1.0, atol=tolerance)


def check(result: FrameResult) -> None:
    """All that /fused_classes and /ood_warnings would carry."""
    check_pmf(result.pmf)
    verdicts = result.verdicts
    for name in ("entropy", "mutual_information", "ood_score", "p_values"):
        assert np.isfinite(getattr(verdicts, name)).all(), name
    assert (verdicts.entropy >= 0).all() and (verdicts.mutual_information >= 0).all()
    assert ((verdicts.p_values >= 0) & (verdicts.p_values <= 1)).all()


@pytest.mark.parametrize("restart", [False, True], ids=["going on", "restarting"])
def test_extreme_logits_and_features_leave_class_and_every_score_finite(bundle, restart) -> None:
    posterior = bundle.posterior()
    engine = FusionEngine(bundle, FusionSettings(restart_on_switch=restart))
    stamp = 0
    for logit in LARGE:
        for feature in LARGE:
            logits = np.zeros((2, posterior.networks, posterior.classes))
            logits[0, 0, 1], logits[0, -1, 2] = logit, -logit
            logits[1, :, 3] = logit
            features = np.full((2, posterior.networks, posterior.features), feature)
            features[1] *= -1
            stamp += 100_000_000
            check(
                engine.update(Observation(f"camera{stamp % 3}", stamp, ["a", "b"], Views(logits, features)))
            )


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_finite_output_of_the_networks_gives_finite_scores(bundle, data) -> None:
    posterior = bundle.posterior()
    engine = FusionEngine(bundle)
    networks, classes, width = posterior.networks, posterior.classes, posterior.features
    for step in range(3):
        logits = data.draw(arrays(np.float32, (1, networks, classes), elements=single, fill=single))
        features = data.draw(arrays(np.float32, (1, networks, width), elements=single, fill=single))
        check(engine.update(Observation("front", step * 10**8, ["a"], Views(logits, features))))


def test_single_and_double_precision_views_give_the_same_class_and_warnings(bundle) -> None:
    posterior = bundle.posterior()
    rng = np.random.default_rng(0)
    engines = [FusionEngine(bundle), FusionEngine(bundle)]
    for step in range(8):
        logits = 4 * rng.normal(size=(3, posterior.networks, posterior.classes))
        features = np.abs(rng.normal(size=(3, posterior.networks, posterior.features)))
        results = [
            engine.update(
                Observation("front", step * 10**8, "abc", Views(logits.astype(kind), features.astype(kind)))
            )
            for engine, kind in zip(engines, (np.float64, np.float32), strict=True)
        ]
        np.testing.assert_allclose(results[0].pmf, results[1].pmf, atol=1e-4)
        np.testing.assert_array_equal(results[0].verdicts.level, results[1].verdicts.level)
        np.testing.assert_allclose(results[0].verdicts.ood_score, results[1].verdicts.ood_score, atol=1e-2)


@settings(max_examples=60, deadline=None)
@given(
    mean=arrays(np.float64, 4, elements=double),
    variance=arrays(np.float64, 4, elements=st.floats(0, 1.7e308)),
)
def test_every_form_of_the_pmf_takes_any_finite_gaussian(mean, variance) -> None:
    check_pmf(softmax(mean))
    check_pmf(probit(mean, variance))
    check_pmf(monte_carlo(mean, variance).pmf)
    check_pmf(monte_carlo_joint(mean, np.diag(variance)).pmf)
