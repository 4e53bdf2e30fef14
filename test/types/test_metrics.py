"""Scores against scikit-learn and against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from lla_fusion_ros.types import metrics
from lla_fusion_ros.types.errors import InputError


def predictions(seed, n=200, classes=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.5), size=n), rng.integers(classes, size=n)


def detections(seed, n=80, ties=True):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    positive = rng.random(n) < 0.4
    positive[:2] = True, False
    return (np.round(score + positive, 1) if ties else score + positive), positive


def test_accuracy_nll_and_brier_equal_scikit_learn():
    pmf, label = predictions(0)
    assert metrics.accuracy(pmf, label) == sk.accuracy_score(label, pmf.argmax(1))
    assert metrics.nll(pmf, label) == pytest.approx(sk.log_loss(label, pmf, labels=range(4)), rel=1e-9)
    one_hot = np.eye(4)[label]
    per_class = [sk.brier_score_loss(one_hot[:, m], pmf[:, m]) for m in range(4)]
    assert metrics.brier(pmf, label) == pytest.approx(sum(per_class))


def test_a_certain_mistake_costs_much_but_not_infinitely():
    assert metrics.nll(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(-np.log(1e-12))


def test_ece_by_hand_with_a_closed_last_bin():
    pmf = np.array([[0.55, 0.45], [0.55, 0.45], [0.9, 0.1], [1.0, 0.0]])
    label = np.array([0, 1, 0, 1])
    # bins of width 1/2: all four in [1/2, 1]: confidence .75, accuracy .5
    assert metrics.ece(pmf, label, bins=2) == pytest.approx(0.25)
    # bins of width 1/10: .55 twice (accuracy .5), .9 and 1.0 in the last (accuracy .5, confidence .95)
    assert metrics.ece(pmf, label, bins=10) == pytest.approx(2 / 4 * 0.05 + 2 / 4 * 0.45)
    # the paper divides each gap by the size of its bin instead
    assert metrics.ece_paper(pmf, label, bins=10) == pytest.approx(0.05 / 2 + 0.45 / 2)


def test_reliability_rows_are_means_over_their_bins():
    pmf, label = predictions(1)
    table = metrics.reliability(pmf, label, bins=5)
    assert table.count.sum() == 200
    assert np.isnan(table.accuracy[0])  # with 4 classes the largest probability is never below 1/4
    inside = (pmf.max(1) >= 0.6) & (pmf.max(1) < 0.8)
    assert table.confidence[3] == pytest.approx(pmf.max(1)[inside].mean())
    assert table.accuracy[3] == pytest.approx((pmf.argmax(1) == label)[inside].mean())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), ties=st.booleans())
def test_detection_scores_equal_scikit_learn(seed, ties):
    score, positive = detections(seed, ties=ties)
    assert metrics.auroc(score, positive) == pytest.approx(sk.roc_auc_score(positive, score))
    assert metrics.aupr(score, positive) == pytest.approx(sk.average_precision_score(positive, score))
    fpr, tpr, thresholds = sk.roc_curve(positive, score, drop_intermediate=False)
    own = metrics.roc_curve(score, positive)
    for ours, theirs in zip(own, (fpr, tpr, thresholds), strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert metrics.fpr95(score, positive) == pytest.approx(fpr[np.argmax(tpr >= 0.95)])
    precision, recall, cuts = sk.precision_recall_curve(positive, score)
    own = metrics.pr_curve(score, positive)
    np.testing.assert_allclose(own[0], precision[:-1][::-1])
    np.testing.assert_allclose(own[1], recall[:-1][::-1])
    np.testing.assert_allclose(own[2], cuts[::-1])


def test_a_perfect_detector_and_a_useless_one():
    positive = np.array([True] * 5 + [False] * 5)
    assert metrics.auroc(positive.astype(float), positive) == 1.0
    assert metrics.fpr95(positive.astype(float), positive) == 0.0
    assert metrics.auroc(np.zeros(10), positive) == 0.5


def test_flips_count_changes_of_the_shown_class():
    assert metrics.flips(np.array([1, 1, 2, 1, 1])) == 2
    np.testing.assert_array_equal(metrics.flips(np.array([[1, 1, 1], [0, 1, 0]])), [0, 2])
    assert metrics.flips(np.array([3])) == 0


@pytest.mark.parametrize(
    ("shown", "frames"),
    [([4, 4, 4], 1), ([1, 4, 4], 2), ([4, 1, 4], 3), ([4, 4, 1], None), ([1, 1, 1], None), ([], None)],
)
def test_frames_until_the_right_class_stays(shown, frames):
    assert metrics.frames_to_settle(np.array(shown), 4) == frames


def test_bootstrap_interval_of_a_mean_matches_the_normal_approximation():
    values = np.random.default_rng(2).normal(size=400)
    low, high = metrics.bootstrap_interval(values)
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.4 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.4 * error)
    assert metrics.bootstrap_interval(values) == (low, high)  # the same seed, the same interval


def test_bootstrap_draws_whole_tracks():
    """Copies of one number within a track add no information; drawing rows would halve the interval."""
    per_track = np.random.default_rng(3).normal(size=50)
    values, track = np.repeat(per_track, 20), np.repeat([f"track {i}" for i in range(50)], 20)
    by_row = np.subtract(*metrics.bootstrap_interval(values)[::-1])
    by_track = np.subtract(*metrics.bootstrap_interval(values, track=track)[::-1])
    alone = np.subtract(*metrics.bootstrap_interval(per_track)[::-1])
    assert by_track == pytest.approx(alone, rel=0.15)
    assert by_track > 3 * by_row


def test_bootstrap_takes_a_statistic_of_several_arrays():
    pmf, label = predictions(4)
    low, high = metrics.bootstrap_interval(pmf, label, statistic=metrics.nll, resamples=200)
    assert low < metrics.nll(pmf, label) < high


def test_what_cannot_be_scored_is_refused_with_the_cause():
    pmf, label = predictions(5)
    with pytest.raises(InputError, match="labels range from 0 to 4"):
        metrics.nll(pmf, np.where(label == 0, 4, 0))
    with pytest.raises(InputError, match="shape"):
        metrics.accuracy(pmf, label[:-1])
    with pytest.raises(InputError, match="NaN"):
        metrics.brier(pmf * np.nan, label)
    with pytest.raises(InputError, match="only one kind"):
        metrics.auroc(np.arange(3.0), np.ones(3, bool))
    with pytest.raises(InputError, match="do not fit"):
        metrics.aupr(np.arange(3.0), np.ones(2, bool))
    with pytest.raises(InputError, match="detection scores contain NaN"):
        metrics.fpr95(np.array([np.nan, 1.0]), np.array([True, False]))
    with pytest.raises(InputError, match="cannot bootstrap"):
        metrics.bootstrap_interval(np.empty(0))
    with pytest.raises(InputError, match="at least 1 bin"):
        metrics.ece(pmf, label, bins=0)
