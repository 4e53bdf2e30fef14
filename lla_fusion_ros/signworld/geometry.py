"""Where the cameras of a drive are, and the vehicle: what CameraInfo and TF say, in the frames of ROS.

The vehicle's frame has x ahead, y to the left, z up; a camera's x right, y down, z ahead; the world's frame,
`odom`, lies where the vehicle begins.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.transforms import Pose

VEHICLE, WORLD = "base_link", "odom"
# The road's x (right), y (up), z (ahead) in the vehicle's axes.
_AXES = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def optical_frame(camera: str) -> str:
    """The name of a camera's frame."""
    return f"{camera}_optical_frame"


def lens_of(camera: Camera) -> Lens:
    f, cx, cy = camera.focal, (camera.width - 1) / 2, (camera.height - 1) / 2
    return Lens(camera.width, camera.height, (f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0))


def mount_of(camera: Camera) -> Pose:
    """The camera seen from the vehicle."""
    return Pose(_AXES @ camera.rotation().T, _AXES @ np.array(camera.offset))


def vehicle_pose(x: float, z: float) -> Pose:
    """The vehicle seen from the world, at x to the right and z along the road."""
    return Pose(np.eye(3), _AXES @ np.array([x, 0.0, z]))


def quaternion(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """x, y, z, w of a rotation."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return float(x), float(y), float(z), float(w)
