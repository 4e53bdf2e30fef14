"""Lenses and transforms, against OpenCV and scipy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.geometry import CameraInfoMessage, Transform
from lla_fusion_ros.tracking.geometry import Geometry
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.pairs import ORIGIN, RAY
from lla_fusion_ros.tracking.transforms import Transforms
from lla_fusion_ros.types.errors import InputError

SECOND = 1_000_000_000
K = (600.0, 0.0, 320.0, 0.0, 610.0, 240.0, 0.0, 0.0, 1.0)
LENSES = {
    "none": ("plumb_bob", ()),
    "plumb_bob": ("plumb_bob", (-0.28, 0.07, 0.001, -0.0005, 0.01)),
    "rational": ("rational_polynomial", (0.2, -0.1, 0.001, 0.0, 0.02, 0.4, -0.1, 0.03)),
    "equidistant": ("equidistant", (-0.02, 0.01, -0.004, 0.001)),
}


@pytest.mark.parametrize("name", LENSES)
def test_pixels_and_directions_agree_with_opencv(name) -> None:
    model, distortion = LENSES[name]
    lens = Lens.checked(640, 480, K, model, distortion)
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-0.4, 0.4, (50, 2)), np.ones(50)]) * rng.uniform(2, 40, (50, 1))
    k, zero = np.array(K).reshape(3, 3), np.zeros(3)
    if model == "equidistant":
        expected = cv2.fisheye.projectPoints(points[:, None], zero, zero, k, np.array(distortion))[0]
    else:
        expected = cv2.projectPoints(points, zero, zero, k, np.array(distortion or (0.0,) * 5))[0]
    pixels = lens.project(points)
    np.testing.assert_allclose(pixels, expected.reshape(-1, 2), atol=1e-9)
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_allclose(lens.rays(pixels), directions, atol=1e-5)


def test_what_is_behind_a_camera_has_no_pixel() -> None:
    lens = Lens.checked(640, 480, K, "plumb_bob", ())
    assert np.isnan(lens.project(np.array([[0.0, 0.0, -5.0], [9.0, 0.0, 0.1]]))).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"matrix": (0.0, *K[1:])}, "focal length"),
        ({"matrix": (float("nan"), *K[1:])}, "focal length"),
        ({"matrix": (*K[:2], 9000.0, *K[3:])}, "principal point"),
        ({"width": 0}, "principal point"),
        ({"model": "magic"}, "distortion model"),
        ({"distortion": (1.0, 2.0)}, "2 coefficients"),
        ({"distortion": (float("inf"),) * 5}, "not finite"),
        ({"distortion": (-80.0, 900.0, 0.0, 0.0, -4e4)}, "cannot be undone"),
    ],
)
def test_what_no_lens_can_have_is_refused_by_name(change, said) -> None:
    good = {"width": 640, "height": 480, "matrix": K, "model": "plumb_bob", "distortion": ()}
    with pytest.raises(InputError, match=said):
        Lens.checked(**{**good, **change})


def transform(parent: str, child: str, place=(0, 0, 0), turn=(0, 0, 0, 1), stamp: int = 0) -> Transform:
    return Transform(Header(stamp, parent), child, tuple(map(float, place)), tuple(map(float, turn)))


def test_a_frame_is_found_up_and_down_the_tree_and_between_two_times() -> None:
    rng = np.random.default_rng(2)
    turns = Rotation.random(4, rng)
    quats, places = turns.as_quat(), rng.normal(size=(4, 3))
    tree = Transforms()
    tree.add(
        [transform("base", "left", places[0], quats[0]), transform("base", "right", places[1], quats[1])],
        True,
    )
    tree.add([transform("odom", "/base", places[2], quats[2], 10 * SECOND)], False)
    tree.add([transform("odom", "base", places[3], quats[3], 11 * SECOND)], False)
    point = rng.normal(size=3)
    pose = tree.lookup("right", "left", 0)
    expected = turns[1].inv().apply(turns[0].apply(point) + places[0] - places[1])
    np.testing.assert_allclose(pose.rotation @ point + pose.place, expected, atol=1e-12)
    pose = tree.lookup("odom", "left", 10 * SECOND + SECOND // 4)
    turn = Slerp([0, 1], turns[2:4])(0.25)
    base = turns[0].apply(point) + places[0]
    expected = turn.apply(base) + 0.75 * places[2] + 0.25 * places[3]
    np.testing.assert_allclose(pose.rotation @ point + pose.place, expected, atol=1e-12)
    assert tree.fixed("left", "right") and not tree.fixed("odom", "left")
    for stamp in (9 * SECOND, 12 * SECOND):
        with pytest.raises(InputError, match="not known for the time"):
            tree.lookup("odom", "left", stamp)
    with pytest.raises(InputError, match="no transform leads"):
        tree.lookup("elsewhere", "left", 0)


def test_transforms_that_cannot_be_are_refused_and_the_rest_stays() -> None:
    tree = Transforms()
    good = transform("a", "b")
    bad = [
        transform("b", "a"),  # above itself
        transform("a", "a"),
        transform("a", ""),
        transform("a", "c", (float("nan"), 0, 0)),
        transform("a", "c", turn=(0, 0, 0, 0)),
    ]
    assert tree.add([good, *bad], True) == 5
    assert tree.lookup("a", "b", 5).place.tolist() == [0, 0, 0]


def test_memory_of_a_moving_frame_is_bounded_and_a_clock_that_jumps_back_begins_again() -> None:
    tree = Transforms()
    for step in range(5000):
        tree.add([transform("odom", "base", (step, 0, 0), stamp=step * SECOND // 100)], False)
    with pytest.raises(InputError):
        tree.lookup("odom", "base", 10 * SECOND)
    tree.add([transform("odom", "base", (7, 0, 0), stamp=SECOND)], False)
    assert tree.lookup("odom", "base", SECOND).place[0] == 7


def info(frame: str, focal: float = 600.0) -> CameraInfoMessage:
    matrix = (focal, 0.0, 320.0, 0.0, focal, 240.0, 0.0, 0.0, 1.0)
    return CameraInfoMessage(Header(1, frame), 640, 480, "plumb_bob", (), matrix, (0.0,) * 12)


def test_geometry_says_what_is_missing_until_it_can_place_a_box() -> None:
    geometry, box = Geometry(("left", "right")), np.array([[320.0, 240.0, 20.0, 20.0]])

    def reason(camera: str, stamp: int = 10 * SECOND) -> str:
        assert geometry.see(camera, stamp, box) is None
        return geometry.reasons[camera]

    assert "no camera_info of left" in reason("left")
    geometry.take_info("left", info("left_frame"))
    geometry.take_info("right", info("right_frame", focal=0.0))
    assert "focal length" in reason("right")
    geometry.take_info("right", info("right_frame"))
    assert "no transform leads" in reason("right")
    static = [transform("base", "left_frame"), transform("base", "right_frame", (1, 0, 0))]
    geometry.take_transforms(static, fixed=True)
    sights = geometry.see("right", 10 * SECOND, box)
    assert sights is not None and "right" not in geometry.reasons
    np.testing.assert_allclose(sights[RAY], [[0, 0, 1]], atol=1e-9)
    np.testing.assert_allclose(sights[ORIGIN], [[1, 0, 0]])
    geometry.take_transforms([transform("base", "right_frame", (1, 0.5, 0))], fixed=True)
    assert "jumps" in reason("right") and geometry.jumps == 1
    assert geometry.see("right", 12 * SECOND, box) is not None  # it has stayed where it is


@pytest.mark.parametrize("transforms_first", [True, False])
def test_a_camera_that_is_moved_is_noticed_whatever_came_first(transforms_first) -> None:
    geometry = Geometry(("left", "right"))
    mounts = [transform("base", "left"), transform("base", "right", (1, 0, 0))]
    if transforms_first:
        geometry.take_transforms(mounts, True)
    for camera in ("left", "right"):
        geometry.take_info(camera, info(camera))
    if not transforms_first:
        geometry.take_transforms(mounts, True)
    assert geometry.jumps == 0
    geometry.take_transforms([transform("base", "right", (2, 0, 0))], True)
    assert geometry.jumps == 1


def test_a_refused_camera_info_is_said_at_once() -> None:
    geometry = Geometry(("left", "right"))
    geometry.take_info("left", info("left", focal=0.0))
    assert "refused" in geometry.reasons["left"]
