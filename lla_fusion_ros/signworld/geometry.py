"""Where the cameras of a drive are, and the vehicle: what CameraInfo and TF say, in the frames of ROS.

The vehicle's frame has x ahead, y to the left, z up; a camera's x right, y down, z ahead; the world's frame,
`odom`, lies where the vehicle begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.geometry import CameraInfoMessage, Transform
from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.signworld.drive import Drive
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


@dataclass(frozen=True)
class Rig:
    """What is said about the cameras of a recording, besides their images.

    Attributes:
        infos: by camera; their stamps are those of the images.
        mounts: where the cameras are on the vehicle.
        vehicle: where the vehicle is in the world, by stamp.
    """

    infos: Mapping[str, CameraInfoMessage]
    mounts: tuple[Transform, ...]
    vehicle: Callable[[int], Transform]


def rig_of(drive: Drive) -> Rig:
    """The geometry of a drive."""
    start = drive.settings.start
    infos, mounts = {}, []
    for camera in drive.settings.cameras:
        lens, mount, frame = lens_of(camera), mount_of(camera), optical_frame(camera.name)
        k = lens.matrix
        projection = (*k[0:3], 0.0, *k[3:6], 0.0, *k[6:9], 0.0)
        infos[camera.name] = CameraInfoMessage(
            Header(start, frame), lens.width, lens.height, lens.model, (0.0,) * 5, k, projection
        )
        mounts.append(
            Transform(Header(start, VEHICLE), frame, _point(mount.place), quaternion(mount.rotation))
        )

    def vehicle(stamp: int) -> Transform:
        x, z = drive.vehicle((stamp - start) / 1e9)
        place = _AXES @ np.array([x, 0.0, z])
        return Transform(Header(stamp, WORLD), VEHICLE, _point(place), (0.0, 0.0, 0.0, 1.0))

    return Rig(infos, tuple(mounts), vehicle)


def _point(place: np.ndarray) -> tuple[float, float, float]:
    x, y, z = place.tolist()
    return x, y, z


def quaternion(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """x, y, z, w of a rotation."""
    x, y, z, w = Rotation.from_matrix(rotation).as_quat().tolist()
    return x, y, z, w
