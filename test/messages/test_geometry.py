"""CameraInfo and transforms: the same bytes as ROS writes, and back."""

from __future__ import annotations

import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.geometry import (
    CameraInfoMessage,
    Transform,
    parse_camera_info,
    parse_transforms,
    write_camera_info,
    write_transforms,
)

STAMP = 12 * 10**9 + 34


@pytest.mark.parametrize("coefficients", [0, 4, 5, 8])
def test_camera_info_is_read_and_written_as_by_ros(coefficients) -> None:
    k, d = [float(i) for i in range(9)], [0.1 * i for i in range(coefficients)]
    message = CameraInfo(width=640, height=480, distortion_model="plumb_bob", d=d, k=k, p=[2.0] * 12)
    message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    message.header.frame_id, message.header.stamp.sec, message.header.stamp.nanosec = "front", 12, 34
    raw = serialize_message(message)
    info = parse_camera_info(raw)
    assert info == CameraInfoMessage(
        Header(STAMP, "front"), 640, 480, "plumb_bob", tuple(d), tuple(k), (2.0,) * 12
    )
    assert parse_camera_info(write_camera_info(info)) == info
    assert len(write_camera_info(info)) == len(raw)  # padding may hold anything


def test_transforms_are_read_and_written_as_by_ros() -> None:
    tf2 = pytest.importorskip("tf2_msgs.msg", reason="built by `make setup` without a sourced ROS")
    from geometry_msgs.msg import TransformStamped

    given = [
        Transform(Header(STAMP, "odom"), child, (1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8))
        for child in ("base_link", "a", "camera")
    ]
    message = tf2.TFMessage()
    for each in given:
        own = TransformStamped(child_frame_id=each.child)
        own.header.frame_id, own.header.stamp.sec, own.header.stamp.nanosec = "odom", 12, 34
        move = own.transform
        move.translation.x, move.translation.y, move.translation.z = each.place
        move.rotation.x, move.rotation.y, move.rotation.z, move.rotation.w = each.turn
        message.transforms.append(own)
    raw = serialize_message(message)
    assert list(parse_transforms(raw)) == given
    assert list(parse_transforms(write_transforms(given))) == given
    assert len(write_transforms(given)) == len(raw)
