"""sensor_msgs/CameraInfo and tf2_msgs/TFMessage: what cameras and frames say about where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.messages.cdr import CdrReader, CdrWriter, Header, Raw

MOST_COEFFICIENTS = 64
MOST_TRANSFORMS = 10_000


@dataclass(frozen=True, slots=True)
class CameraInfoMessage:
    """sensor_msgs/CameraInfo, as far as it is used; `matrix` is K and `projection` P, row by row."""

    header: Header
    width: int
    height: int
    model: str
    distortion: tuple[float, ...]
    matrix: tuple[float, ...]
    projection: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Transform:
    """geometry_msgs/TransformStamped: the frame `child` seen from `header.frame_id`.

    Attributes:
        place: x, y, z in metres.
        turn: the quaternion x, y, z, w.
    """

    header: Header
    child: str
    place: tuple[float, float, float]
    turn: tuple[float, float, float, float]


def parse_camera_info(raw: Raw) -> CameraInfoMessage:
    """sensor_msgs/CameraInfo from its bytes."""
    reader = CdrReader(raw)
    header = reader.header()
    height, width = reader.u32(), reader.u32()
    model = reader.string()
    distortion = reader.f64(reader.count(8)).tolist()
    matrix, _, projection = reader.f64(9).tolist(), reader.f64(9), reader.f64(12).tolist()
    reader.align(4)
    reader.skip(4 + 4 + 16 + 1)  # binning, region of interest
    reader.finish()
    return CameraInfoMessage(
        header, width, height, model, tuple(distortion[:MOST_COEFFICIENTS]), tuple(matrix), tuple(projection)
    )


def write_camera_info(info: CameraInfoMessage) -> bytes:
    """sensor_msgs/CameraInfo, without rectification, binning and region of interest."""
    writer = CdrWriter()
    writer.header(info.header)
    writer.u32(info.height)
    writer.u32(info.width)
    writer.string(info.model)
    writer.u32(len(info.distortion))
    _doubles(writer, info.distortion)
    _doubles(writer, info.matrix)
    _doubles(writer, np.eye(3).ravel().tolist())
    _doubles(writer, info.projection)
    for _ in range(6):
        writer.u32(0)
    writer.u8(0)
    return writer.message()


def parse_transforms(raw: Raw) -> tuple[Transform, ...]:
    """tf2_msgs/TFMessage from its bytes."""
    reader = CdrReader(raw)
    transforms = []
    for _ in range(min(reader.count(68), MOST_TRANSFORMS)):
        reader.align(4)
        header, child = reader.header(), reader.string()
        x, y, z, *turn = reader.f64(7).tolist()
        transforms.append(Transform(header, child, (x, y, z), (turn[0], turn[1], turn[2], turn[3])))
    return tuple(transforms)


def write_transforms(transforms: Sequence[Transform]) -> bytes:
    """tf2_msgs/TFMessage."""
    writer = CdrWriter()
    writer.u32(len(transforms))
    for each in transforms:
        writer.header(each.header)
        writer.string(each.child)
        _doubles(writer, (*each.place, *each.turn))
    return writer.message()


def _doubles(writer: CdrWriter, numbers: Sequence[float]) -> None:
    if numbers:
        writer.align(8)
        writer.raw(np.array(numbers, "<f8").tobytes())
