"""How well two cameras fit each other."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.tracking.assignment import JOIN, STAY
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.pairs import shown
from lla_fusion_ros.tracking.transforms import Pose
from lla_fusion_ros.tracking.trust import FIRST, Trust, alone

CLEAR, NONE = np.full(3, JOIN + 4), np.empty(0)


def test_fits_that_are_hardly_enough_do_not_add_up_to_trust() -> None:
    trust = Trust()
    assert not any(trust.tell((0, 1), np.full(1, JOIN + 0.1), 0, 0.1) for _ in range(100))
    assert trust.tell((0, 2), np.full(20, JOIN + FIRST), 0, 1.0)  # many at once are


def test_two_cameras_that_no_longer_fit_lose_their_trust_and_can_win_it_again() -> None:
    trust = Trust()
    assert all([trust.tell((0, 1), CLEAR, 0, 0.1) for _ in range(300)][5:])
    lost = [trust.tell((0, 1), NONE, 2, 0.1) for _ in range(300)]
    assert lost[0] and not lost[-1] and trust.doubts(1).keys() == {0} and not trust.doubts(2)
    assert [trust.tell((0, 1), CLEAR, 0, 0.1) for _ in range(300)][-1] and not trust.doubts(1)


def test_nothing_to_see_changes_nothing() -> None:
    trust = Trust()
    trust.tell((0, 1), CLEAR, 0, 1.0)
    assert all(trust.tell((0, 1), NONE, 0, 1.0) for _ in range(10_000))


def test_a_track_is_alone_once_it_is_ripe_and_fits_nothing() -> None:
    bad, good = STAY - 1, STAY + 1
    score = np.array([[bad, bad, bad], [bad, good, bad], [bad, bad, bad], [-np.inf] * 3])
    ripe = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0]], bool)
    first, second = alone(score, ripe)
    assert first.tolist() == [True, False, False, False] and second.tolist() == [True, False, False]


def test_points_at_the_edge_beside_and_behind_are_not_shown() -> None:
    lens = Lens(640, 480, (600.0, 0.0, 320.0, 0.0, 600.0, 240.0, 0.0, 0.0, 1.0))
    quarter = Pose(np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]), np.array([1.0, 0, 0]))  # looks along x
    points = np.array([[11.0, 0, 0], [11, 0, 4.8], [11, 0, 4], [-9, 0, 0], [11, 0, 20], [np.nan] * 3])
    assert shown(lens, quarter, points).tolist() == [True, False, True, False, False, False]
