"""Which tracks of different cameras are one object."""

from __future__ import annotations

from itertools import permutations

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lla_fusion_ros.tracking.assignment import JOIN, MARGIN, STAY, assigned
from lla_fusion_ros.tracking.association import Association
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.pairs import evidence, log_ratio, see, shown
from lla_fusion_ros.tracking.transforms import Pose

SECOND = 1_000_000_000
LENS = Lens(640, 480, (600.0, 0.0, 320.0, 0.0, 600.0, 240.0, 0.0, 0.0, 1.0))
LOOK = Rotation.from_euler("y", [[-4], [5]], degrees=True).as_matrix()
MOUNTS = {
    "left": Pose(LOOK[0], np.array([-0.6, 0.0, 0.0])),
    "right": Pose(LOOK[1], np.array([0.6, 0.05, 0.2])),
}


def boxes(camera: str, points: np.ndarray, size: float = 0.9, rng=None) -> np.ndarray:
    """Of signs of that size, x right, y down, z ahead of the vehicle."""
    mount = MOUNTS[camera]
    seen = (points - mount.place) @ mount.rotation
    side = 600.0 * size / seen[:, [2]]
    found = np.concatenate([LENS.project(seen), side, side], axis=1)
    if rng is not None:
        found[:, :2] += side * rng.normal(0, 0.05, (len(points), 2))
        found[:, 2:] *= np.exp(rng.normal(0, 0.05, (len(points), 2)))
    return found


def look(camera: str, stamp: int, found: np.ndarray):
    return see(LENS, MOUNTS[camera], found)


def shows(camera: str, stamp: int, points: np.ndarray):
    return shown(LENS, MOUNTS[camera], points)


def drive(
    association: Association, points: np.ndarray, seconds: float = 2.0, rng=None, skew: int = 0, names=None
):
    """Past signs at 9 m/s; the last groups, and every pair that was ever joined."""
    ever, groups = set(), {}
    for step in range(int(10 * seconds)):
        for camera, late in (("left", 0), ("right", skew)):
            stamp = SECOND + step * SECOND // 10 + late
            now = points - [0, 0, 9.0 * (stamp - SECOND) / SECOND]
            shown = np.flatnonzero(now[:, 2] > 3)
            groups = association.groups(stamp)
            ever |= {(a, b) for a, own in groups.items() for b in own if a < b}
            ids = [f"{camera}/{i}" for i in shown]
            association.observe(camera, stamp, ids, boxes(camera, now[shown], rng=rng))
    groups = association.finish()
    return groups, ever | {(a, b) for a, own in groups.items() for b in own if a < b}


SIGNS = np.array([[4.5, -1.0, 30.0], [-5.0, -0.8, 34.0], [5.0, -1.2, 41.0], [4.8, -0.7, 52.0]])


def test_the_along_and_across_measures_are_those_of_opencvs_triangulation() -> None:
    rng = np.random.default_rng(3)
    points = np.column_stack([rng.uniform(-5, 5, 30), rng.uniform(-2, 1, 30), rng.uniform(8, 60, 30)])
    left, right = (look(camera, 0, boxes(camera, points)) for camera in MOUNTS)
    sums = evidence(left[:, None], right)
    own = np.arange(30)
    a, ae, _, b, bg, _, by = sums[:7, own, own]
    np.testing.assert_allclose(ae / a, 0.0, atol=1e-4)  # on the epipolar line
    # y = G / h: the size that follows is the true one, as OpenCV's depth says
    np.testing.assert_allclose(by / bg, 1 / 0.9, rtol=0.06)
    poses = [np.hstack([m.rotation.T, (-m.rotation.T @ m.place)[:, None]]) for m in MOUNTS.values()]
    k = np.array(LENS.matrix).reshape(3, 3)
    pixels = [boxes(camera, points)[:, :2].T for camera in MOUNTS]
    found = cv2.triangulatePoints(k @ poses[0], k @ poses[1], *pixels)
    np.testing.assert_allclose((found[:3] / found[3]).T, points, atol=1e-6)
    score = log_ratio(sums)
    assert (score.argmax(axis=1) == own).all() and (np.diag(score) > 0).all()


@pytest.mark.parametrize("seed", range(30))
def test_the_assignment_is_the_best_of_all_and_abstains_where_it_is_not_clear(seed) -> None:
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 8, (4, 4))
    none, ripe = np.zeros((4, 4), bool), np.ones((4, 4), bool)
    joined = assigned(score, none, ripe)
    worth = np.maximum(score, 0)
    values = {p: sum(worth[i, p[i]] for i in range(4)) for p in permutations(range(4))}
    best = max(values, key=values.__getitem__)
    for row in range(4):
        column = best[row]
        others = max(
            sum(worth[i, p[i]] for i in range(4) if (i, p[i]) != (row, column))
            for p in permutations(range(4))
        )
        sure = score[row, column] >= JOIN and values[best] - others >= MARGIN
        assert joined[row, column] == sure
    assert joined.sum(axis=0).max() <= 1 and joined.sum(axis=1).max() <= 1
    assert not assigned(score, none, ~ripe).any()


def test_a_joined_pair_stays_until_it_is_clearly_wrong() -> None:
    yes, ripe = np.ones((1, 1), bool), np.ones((1, 1), bool)
    assert assigned(np.array([[STAY + 0.1]]), yes, ripe).all()
    assert not assigned(np.array([[STAY - 0.1]]), yes, ripe).any()
    assert not assigned(np.array([[JOIN - 0.1]]), ~yes, ripe).any()


@pytest.mark.parametrize("skew", [0, 5_000_000, 50_000_000])
def test_signs_seen_by_two_cameras_become_one_object_each(skew) -> None:
    association = Association(tuple(MOUNTS), look, shows)
    groups, ever = drive(association, SIGNS, rng=np.random.default_rng(4), skew=skew)
    assert ever == {(f"left/{i}", f"right/{i}") for i in range(4)}
    assert groups["right/2"] == ("left/2", "right/2")
    assert association.joins == 4 and association.splits == 0


def test_the_order_in_which_frames_come_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    frames = []
    for step in range(15):
        for camera, late in (("left", 0), ("right", 5_000_000)):
            stamp = SECOND + step * SECOND // 10 + late
            now = SIGNS - [0, 0, 9.0 * stamp / SECOND - 9]
            frames.append((stamp, camera, boxes(camera, now, rng=rng)))
    swapped = [frames[i + 1 - 2 * (i % 2)] for i in range(len(frames))]
    results = []
    for order in (frames, swapped):
        association, told = Association(tuple(MOUNTS), look, shows), {}
        for stamp, camera, found in order:
            told[stamp] = association.groups(stamp)
            association.observe(camera, stamp, [f"{camera}/{i}" for i in range(4)], found)
        results.append(told)
    assert results[0] == results[1] and results[0][frames[-1][0]]


def test_a_wrong_join_is_undone_within_a_second() -> None:
    association = Association(tuple(MOUNTS), look, shows)
    drive(association, SIGNS, seconds=1.0, rng=np.random.default_rng(6))
    parted = None  # after a second the left tracker swaps two ids
    for step in range(10, 26):
        stamp = SECOND + step * SECOND // 10
        now = SIGNS - [0, 0, 0.9 * step]
        for camera, rows in (("left", [1, 0, 2, 3]), ("right", [0, 1, 2, 3])):
            groups = association.groups(stamp)
            association.observe(camera, stamp, [f"{camera}/{i}" for i in range(4)], boxes(camera, now[rows]))
            if parted is None and groups.get("left/0") != ("left/0", "right/0"):
                parted = step - 10
    assert parted is not None and parted <= 10
    assert association.finish().get("left/0") in (None, ("left/0", "right/1"))


def test_a_track_that_broke_is_found_again_through_the_other_camera() -> None:
    association = Association(tuple(MOUNTS), look, shows)
    drive(association, SIGNS[:1], seconds=1.5)
    for step in range(15, 25):
        stamp = SECOND + step * SECOND // 10
        now = SIGNS[:1] - [0, 0, 0.9 * step]
        for camera, name in (("left", "left/9"), ("right", "right/0")):
            association.groups(stamp)
            association.observe(camera, stamp, [name], boxes(camera, now))
    assert association.finish()["left/9"] == ("left/0", "right/0", "left/9")


def test_forgotten_tracks_and_parted_objects_leave_nothing_behind() -> None:
    association = Association(tuple(MOUNTS), look, shows)
    drive(association, SIGNS)
    association.forget([f"{camera}/{i}" for camera in MOUNTS for i in range(3)])
    assert set(association.finish()) == {"left/3", "right/3"}
    association.part()
    assert association.finish() == {} and association.splits >= 1


def test_a_camera_that_is_turned_by_ten_degrees_is_joined_with_nobody() -> None:
    turned = {
        **MOUNTS,
        "right": Pose(
            MOUNTS["right"].rotation @ Rotation.from_euler("y", 10, degrees=True).as_matrix(),
            MOUNTS["right"].place,
        ),
    }
    association = Association(
        tuple(MOUNTS),
        lambda camera, stamp, found: see(LENS, turned[camera], found),
        lambda camera, stamp, points: shown(LENS, turned[camera], points),
    )
    _, ever = drive(association, SIGNS, rng=np.random.default_rng(7))
    assert not ever and list(association.doubts("right")) == ["left"]


@pytest.mark.parametrize("fitting", [1, 4])
def test_two_cameras_are_joined_only_if_most_of_what_both_should_show_fits(fitting) -> None:
    association, ever = Association(tuple(MOUNTS), look, shows), set()
    for step in range(20):
        stamp = SECOND + step * SECOND // 10
        now = SIGNS - [0, 0, 0.9 * step]
        for camera in MOUNTS:
            found = boxes(camera, now)
            if camera == "right":
                found[fitting:, 1] += 100  # pixels below the epipolar line, still inside the image
            ever |= set(association.groups(stamp))
            association.observe(camera, stamp, [f"{camera}/{i}" for i in range(4)], found)
    ever |= set(association.finish())
    assert ever == (set() if fitting == 1 else {f"{camera}/{i}" for camera in MOUNTS for i in range(4)})
    assert bool(association.doubts("left")) == bool(association.doubts("right")) == (fitting == 1)


def test_more_tracks_than_there_is_room_for_are_left_alone() -> None:
    association = Association(tuple(MOUNTS), look, shows)
    many = np.tile(np.array([[320.0, 240.0, 20.0, 20.0]]), (400, 1))
    for step in range(3):
        association.groups(SECOND + step * SECOND // 10)
        association.observe("left", SECOND + step * SECOND // 10, [f"left/{i}" for i in range(400)], many)
    assert association.finish() == {}
