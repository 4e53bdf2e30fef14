"""Intervals over tracks."""

import numpy as np
import pytest

from lla_fusion_ros.lab.evaluation.track_scores import Resamples, ece_if_calibrated, interval
from lla_fusion_ros.types.metrics import ece


def random_pmf(tracks, classes, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.4), tracks), rng.integers(0, classes, tracks)


def test_a_resampled_ece_is_the_ece_of_the_resampled_tracks():
    pmf, label = random_pmf(40, 3, 1)
    draws = Resamples.draw(40, resamples=5, seed=2)
    correct = (pmf.argmax(axis=1) == label).astype(float)
    for counts, value in zip(draws.counts, draws.ece(pmf.max(axis=1), correct), strict=True):
        rows = np.repeat(np.arange(40), counts.astype(int))
        assert value == pytest.approx(ece(pmf[rows], label[rows]))


def test_exact_confidences_show_an_ece_too_and_less_of_it_on_more_tracks():
    few, many = np.full(50, 0.8), np.full(5000, 0.8)
    least, most = ece_if_calibrated(few, 50)
    assert 0.02 < least == most < 0.09  # a single draw: nothing that could hang together
    assert ece_if_calibrated(many, 5000)[0] < 0.01
    assert ece_if_calibrated(np.ones(50), 50) == [0, 0]


def test_draws_of_one_track_count_as_more_only_as_far_as_they_are_independent():
    confidence = np.full(100 * 50, 0.8)  # 100 draws of 50 tracks
    least, most = ece_if_calibrated(confidence, 50)
    assert least < 0.01
    assert most == pytest.approx(ece_if_calibrated(confidence[:50], 50)[0], rel=0.2)


def test_several_draws_of_a_track_are_resampled_together():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(3, 30))
    draws = Resamples.draw(30, 40)
    assert np.allclose(draws.means(values.ravel()), draws.means(values.mean(axis=0)))
    confidence, correct = rng.random((3, 30)), (rng.random((3, 30)) < 0.5).astype(float)
    for counts, value in zip(draws.counts, draws.ece(confidence.ravel(), correct.ravel()), strict=True):
        again = Resamples(np.ones((1, int(3 * counts.sum()))))
        rows = np.tile(np.repeat(np.arange(30), counts.astype(int)), 3)
        versions = np.repeat(np.arange(3), int(counts.sum()))
        expected = again.ece(confidence[versions, rows], correct[versions, rows])
        assert value == pytest.approx(expected[0])


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(200):
        low, high = interval(Resamples.draw(80, 200, seed).means(rng.normal(1.0, 2.0, 80)))
        hits += low <= 1.0 <= high
    assert 0.88 <= hits / 200 <= 0.99
