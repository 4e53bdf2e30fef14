"""Cameras that see different classes, against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.warnings.scores import FLOOR, camera_statistic, evidence


def random_evidence(views: int, seed: int, classes: int = 4) -> np.ndarray:
    return evidence(np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), views))


def test_no_single_view_rules_a_class_out() -> None:
    assert evidence(np.array([1.0, 0.0])).tolist() == [0.0, np.log(FLOOR)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), cameras=st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_the_camera_test_equals_an_exhaustive_search(seed, cameras) -> None:
    said, camera = random_evidence(10, seed), np.array(cameras)
    best = 0.0
    for name in set(cameras):
        own, rest = said[camera == name].sum(axis=0), said[camera != name].sum(axis=0)
        best = max(best, own.max() + rest.max() - said.sum(axis=0).max())
    found = camera_statistic(said[None], camera[None], np.ones((1, 10), bool))
    assert found[0] == pytest.approx(best, abs=1e-9)


def test_one_camera_cannot_disagree_with_itself() -> None:
    said = evidence(np.array([[0.9, 0.1]] * 5 + [[0.1, 0.9]] * 5))
    assert camera_statistic(said[None], np.zeros((1, 10), int), np.ones((1, 10), bool))[0] == pytest.approx(0)


def test_views_of_another_time_do_not_count() -> None:
    said = evidence(np.array([[0.9, 0.1], [0.1, 0.9]]))
    camera = np.array([[0, 1]])
    assert camera_statistic(said[None], camera, np.array([[True, True]]))[0] > 1
    assert camera_statistic(said[None], camera, np.array([[False, True]]))[0] == pytest.approx(0)
