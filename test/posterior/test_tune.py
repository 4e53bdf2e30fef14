"""Prior and T_theta follow the validation data."""

import numpy as np
import pytest

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.tune import tune
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import probit, softmax


def overconfident_views(rng, scale):
    """Logits `scale` times as large as the truth behind the labels."""
    truth = 2 * rng.normal(size=(1500, 1, 5))
    labels = (rng.random((1500, 1)) > softmax(truth[:, 0]).cumsum(-1)).sum(-1).clip(0, 4)
    features = np.abs(rng.normal(size=(1500, 1, 6)))
    return scale * truth, features, labels


def posterior():
    blocks = np.tile(3.0 * np.eye(6), (1, 5, 1, 1))
    return EnsemblePosterior(np.linalg.cholesky(blocks), prior_precision=1.0)


def nll(pmf, labels):
    return -np.log(pmf[np.arange(len(labels)), 0, labels]).mean()


def test_overconfident_networks_make_the_laplace_term_active():
    logits, features, labels = overconfident_views(np.random.default_rng(0), scale=3.0)
    tuned, report = tune(posterior(), logits, features, labels)
    assert report.active and "T_theta" in report.sentence()
    assert report.nll < report.nll_plain - 0.05
    assert report.nll == pytest.approx(nll(probit(logits, tuned.variance(features)), labels))
    assert report.nll_plain == pytest.approx(nll(softmax(logits), labels))
    for factor in (0.5, 2.0):  # a neighbour is no better
        other = tuned.with_temperature(factor * tuned.temperature)
        assert nll(probit(logits, other.variance(features)), labels) >= report.nll


def test_underconfident_networks_leave_it_inactive_and_the_report_says_so():
    logits, features, labels = overconfident_views(np.random.default_rng(1), scale=0.7)
    tuned, report = tune(posterior(), logits, features, labels)
    assert tuned.temperature == 0 and not report.active
    assert "inactive" in report.sentence()
    assert (tuned.variance(features) == 0).all()
    assert report.nll == report.nll_plain


def test_only_the_given_priors_are_tried():
    logits, features, labels = overconfident_views(np.random.default_rng(2), scale=3.0)
    tuned, report = tune(posterior(), logits, features, labels, priors=[0.5, 5.0])
    assert [row[0] for row in report.table] == [0.5, 5.0]
    assert tuned.prior_precision in (0.5, 5.0)


def test_nothing_to_tune_on_is_refused():
    with pytest.raises(InputError, match="0 logits"):
        tune(posterior(), np.empty((0, 1, 5)), np.empty((0, 1, 6)), np.empty(0, int))
