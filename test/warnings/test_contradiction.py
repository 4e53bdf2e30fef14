"""Change of class over time and between cameras, against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.warnings.contradiction import (
    FLOOR,
    all_cameras_show,
    camera_statistic,
    changes,
    evidence,
    switch_statistic,
)
from lla_fusion_ros.warnings.state import RecentViews


def random_evidence(views: int, seed: int, classes: int = 4) -> np.ndarray:
    return evidence(np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), views))


def class_change(said: np.ndarray) -> np.ndarray:
    """Of one track whose views are all there."""
    return changes(said[None], np.zeros((1, len(said), 1)), np.array([len(said)]))[0][0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), views=st.integers(6, 10))
def test_the_ratio_equals_an_exhaustive_search_over_classes(seed, views) -> None:
    said = random_evidence(views, seed)
    for k, found in list(enumerate(class_change(said), start=1))[2:]:  # three views before at least
        one = max(said[:, y].sum() for y in range(4))
        two = max(said[:k, y].sum() for y in range(4)) + max(said[k:, y].sum() for y in range(4))
        assert found == pytest.approx(two - one)
        assert found >= -1e-9


def test_no_single_view_rules_a_class_out() -> None:
    assert evidence(np.array([1.0, 0.0])).tolist() == [0.0, np.log(FLOOR)]


def test_a_change_is_seen_where_it_happens() -> None:
    said = evidence(np.array([[0.9, 0.1]] * 6 + [[0.1, 0.9]] * 4))
    assert class_change(said).argmax() == 5


def test_feature_change_is_the_two_sample_distance_whichever_view_is_left_out() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1, 10, 3))
    features[0, :2] = 0.0  # two places are still empty
    found = changes(np.zeros((1, 10, 2)), features, np.array([8]))[1][0]
    assert (found[:4] == 0).all() and len(found) == 7  # three views before and after at least
    for split in range(5, 8):
        distances = []
        for left_out in range(2, 10):
            first, second = (
                np.array([i for i in side if i != left_out]) for side in (range(2, split), range(split, 10))
            )
            share = len(first) * len(second) / (len(first) + len(second))
            gap = features[0, first].mean(axis=0) - features[0, second].mean(axis=0)
            distances.append(np.sqrt(share) * np.linalg.norm(gap))
        assert found[split - 1] == pytest.approx(min(distances))


def test_empty_places_of_the_window_are_no_change() -> None:
    recent = RecentViews.zeros(1, 4, 2)
    for seed in range(3):
        recent = recent.pushed(random_evidence(1, 7), np.ones((1, 2)), 0, seed)
    strongest, _ = switch_statistic(recent.evidence, recent.features, recent.count, 1.0, np.ones((1, 4)))
    assert strongest[0] == pytest.approx(0.0, abs=1e-5)


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


def test_one_or_two_odd_views_are_no_change_and_a_window_against_the_history_is() -> None:
    old, odd = evidence(np.array([[0.99, 0.01], [0.01, 0.99]]))
    features, full = np.zeros((1, 10, 1)), np.array([50])
    history = np.array([[40.0, 10.0]])

    def strongest(views: list[np.ndarray]) -> tuple[float, int]:
        found, split = switch_statistic(np.array([views]), features, full, 0.0, history)
        return float(found[0]), int(split[0])

    assert strongest([old] * 9 + [odd])[0] == pytest.approx(0.0)
    assert strongest([old] * 4 + [odd] + [old] * 5)[0] == pytest.approx(0.0)
    assert strongest([old] * 7 + [odd] * 3) == (pytest.approx(3 * np.log(99)), 7)
    assert strongest([odd] * 10) == (pytest.approx(10 * np.log(99)), 0)
    assert switch_statistic(np.array([[odd] * 10]), features, np.array([10]), 0.0, history)[0] == [0.0]


# Whether a change is one of the object, or of the camera that looks.
OLD, NEW, VAGUE = evidence(np.array([[0.999, 0.001], [0.001, 0.999], [0.4, 0.6]]))
TENTH = 100_000_000


def shown(views: list[tuple[int, np.ndarray]], split: int, stamps: list[int] | None = None) -> bool:
    """Views as camera and evidence, ten a second."""
    stamp = np.arange(len(views)) * TENTH if stamps is None else np.array(stamps) * TENTH
    camera, said = np.array([camera for camera, _ in views]), np.array([said for _, said in views])
    old = int(said[:split].sum(axis=0).argmax())
    return all_cameras_show(said, camera, stamp, split, span=10 * TENTH, old=old)


def test_what_one_camera_shows_alone_is_a_change_of_the_object_once_it_persists() -> None:
    assert shown([(0, OLD), (0, OLD), (0, NEW), (0, NEW), (0, NEW)], 2)
    assert shown([(0, OLD), (0, OLD), (0, VAGUE), (0, NEW), (0, VAGUE)], 2)
    assert not shown([(0, OLD), (0, OLD), (0, NEW), (0, NEW)], 2)
    assert not shown([(0, OLD), (0, OLD), (0, NEW), (0, NEW), (0, NEW), (0, OLD)], 2)  # it went back


def test_a_camera_that_looked_at_the_change_must_have_been_seen_since() -> None:
    three = [(1, NEW)] * 3
    assert not shown([(0, OLD), (0, OLD), *three], 2)
    assert shown([(0, OLD), (0, OLD), *three, (0, NEW)], 2)
    assert shown([(0, OLD), (0, OLD), *three], 2, stamps=[0, 1, 30, 31, 32])  # handed over, long after


def test_a_camera_that_saw_both_sides_may_witness_for_one_that_lost_the_object() -> None:
    seen_by_both = [(0, OLD), (1, OLD), (0, OLD), (1, OLD)]
    assert not shown([*seen_by_both, (0, NEW), (0, NEW)], 4)  # the other may still come
    assert shown([*seen_by_both, (0, NEW), (0, NEW), (0, NEW)], 4)
    always_other = [(0, OLD), (1, NEW), (0, OLD), (0, OLD)]  # what it says now it has said before
    assert not shown([*always_other, (1, NEW), (1, NEW), (1, NEW)], 4)


def test_no_camera_may_still_say_the_old_class_or_hardly_the_new() -> None:
    assert not shown([(0, OLD), (0, OLD), (1, NEW), (0, OLD)], 2)
    assert not shown([(0, OLD), (0, OLD), (1, NEW), (1, NEW), (0, VAGUE)], 2)
