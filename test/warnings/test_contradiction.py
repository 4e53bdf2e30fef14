"""Change of class over time and between cameras, against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.warnings.changepoint import (
    FLOOR,
    changes,
    log_likelihood,
    switch_statistic,
)
from lla_fusion_ros.warnings.disagreement import camera_statistic
from lla_fusion_ros.warnings.recent import WINDOW, RecentViews


def random_evidence(views: int, seed: int, classes: int = 4) -> np.ndarray:
    return log_likelihood(np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), views))


def class_change(evidence: np.ndarray) -> np.ndarray:
    """Of one track whose views are all there."""
    return changes(evidence[None], evidence.shape[1], np.array([len(evidence)]))[0][0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), views=st.integers(2, 10))
def test_the_ratio_equals_an_exhaustive_search_over_classes(seed, views) -> None:
    evidence = random_evidence(views, seed)
    for k, found in enumerate(class_change(evidence), start=1):
        one = max(evidence[:, y].sum() for y in range(4))
        two = max(evidence[:k, y].sum() for y in range(4)) + max(evidence[k:, y].sum() for y in range(4))
        assert found == pytest.approx(two - one)
        assert found >= -1e-9


def test_no_single_view_rules_a_class_out() -> None:
    assert log_likelihood(np.array([1.0, 0.0])).tolist() == [0.0, np.log(FLOOR)]


def test_a_change_is_seen_where_it_happens() -> None:
    evidence = log_likelihood(np.array([[0.9, 0.1]] * 6 + [[0.1, 0.9]] * 4))
    assert class_change(evidence).argmax() == 5


def test_feature_change_is_the_two_sample_distance() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1, 10, 3))
    features[0, :4] = 0.0  # four places are still empty
    views = np.concatenate([np.zeros((1, 10, 2)), features], axis=2)
    found = changes(views, 2, np.array([6]))[1][0]
    assert (found[:4] == 0).all()
    for split in range(5, 10):
        first, second = features[0, 4:split], features[0, split:]
        share = len(first) * len(second) / 6
        expected = np.sqrt(share) * np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
        assert found[split - 1] == pytest.approx(expected)


def test_empty_places_of_the_window_are_no_change() -> None:
    recent = RecentViews.zeros(1, 4, 2)
    for seed in range(3):
        recent = recent.pushed(random_evidence(1, 7), np.ones((1, 2)), 0, seed)
    assert switch_statistic(recent.views, 4, recent.count, 1.0)[0] == pytest.approx(0.0, abs=1e-5)


def test_the_window_keeps_the_newest_views_last() -> None:
    recent = RecentViews.zeros(2, 3, 1)
    for step in range(WINDOW + 3):
        recent = recent.pushed(np.full((2, 3), step), np.full((2, 1), step), step % 2, step)
    assert recent.stamp[0].tolist() == list(range(3, WINDOW + 3))
    assert recent.views[1, :, 0].tolist() == list(range(3, WINDOW + 3))
    assert recent.present().all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), cameras=st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_the_camera_test_equals_an_exhaustive_search(seed, cameras) -> None:
    evidence, camera = random_evidence(10, seed), np.array(cameras)
    best = 0.0
    for name in set(cameras):
        own, rest = evidence[camera == name].sum(axis=0), evidence[camera != name].sum(axis=0)
        best = max(best, own.max() + rest.max() - evidence.sum(axis=0).max())
    found = camera_statistic(evidence[None], camera[None], np.ones((1, 10), bool))
    assert found[0] == pytest.approx(best, abs=1e-9)


def test_one_camera_cannot_disagree_with_itself() -> None:
    evidence = log_likelihood(np.array([[0.9, 0.1]] * 5 + [[0.1, 0.9]] * 5))
    assert camera_statistic(evidence[None], np.zeros((1, 10), int), np.ones((1, 10), bool))[
        0
    ] == pytest.approx(0)


def test_views_of_another_time_do_not_count() -> None:
    evidence = log_likelihood(np.array([[0.9, 0.1], [0.1, 0.9]]))
    camera = np.array([[0, 1]])
    assert camera_statistic(evidence[None], camera, np.array([[True, True]]))[0] > 1
    assert camera_statistic(evidence[None], camera, np.array([[False, True]]))[0] == pytest.approx(0)
