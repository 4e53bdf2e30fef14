"""What the load of bench and soak hears of the node under test."""

from __future__ import annotations

import time
from collections import Counter

import pytest

pytest.importorskip("rclpy")
from diagnostic_msgs.msg import DiagnosticArray

from bench.load_node import LoadNode
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.status import Status, write_diagnostics


def test_what_nodes_with_other_cameras_tell_is_not_counted(ros_graph, detector):
    load = LoadNode([Message("/left/detections", contract.DETECTIONS, 0, b"")])
    publisher = detector.create_publisher(DiagnosticArray, contract.NODE_DIAGNOSTICS, 10)
    told = [
        Status(0, "perception: camera left", "well", "left", {"fused_frames": "3"}),
        Status(0, "perception: camera right", "well", "right", {"fused_frames": "5"}),
    ]
    load.create_timer(0.05, lambda: publisher.publish(write_diagnostics(Header(time.time_ns(), ""), told)))
    assert load.counters() == {"left": Counter(fused_frames=3)}
    load.destroy_node()
