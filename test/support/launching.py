"""What the launch tests share: they run where `launch_testing` and an installed package are, else skip."""

from __future__ import annotations

import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.types.resources import find_resource
from support.camera import SECOND, START, CameraOnGraph
from support.tiny_bundle import tiny_bundle

CAMERAS = ("left", "right")
TIMEOUT = 90.0


def skip_without_launch() -> None:
    """Skip the whole test file where there is nothing to launch with, or nothing to launch."""
    pytest.importorskip("launch_testing", reason="launch_testing comes with a ROS distribution")
    pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS distribution")
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        prefix = get_package_prefix("lla_fusion_ros")
    except PackageNotFoundError:
        pytest.skip("the package is not installed; run colcon build and source it", allow_module_level=True)
    if not Path(prefix, "lib", "lla_fusion_ros", "perception").is_file():
        pytest.skip(
            "the executables are not in lib/lla_fusion_ros; run colcon build", allow_module_level=True
        )


def small_model() -> str:
    """Path of a small model file."""
    path = Path(tempfile.mkdtemp()) / "tiny.safetensors"
    save_bundle(tiny_bundle(), path)
    return str(path)


def test_description(launch_file: str, **arguments: str) -> Any:
    """The launch file under test, as users launch it."""
    from launch import LaunchDescription
    from launch.actions import IncludeLaunchDescription
    from launch_testing.actions import ReadyToTest

    source = str(find_resource(f"launch/{launch_file}"))
    included = IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))
    return LaunchDescription([included, ReadyToTest()])


test_description.__test__ = False  # type: ignore[attr-defined]


class GraphTestCase(unittest.TestCase):
    """A test with a node of its own."""

    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        rclpy.init()
        cls.node = Node("launch_test")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.destroy_node()
        rclpy.shutdown()

    def expect_fused_frames(self, topic: str) -> None:
        """Send frames of both cameras until fused frames of both come back."""
        cameras = [CameraOnGraph(self.node, name) for name in CAMERAS]
        image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)

        def send(step: int) -> None:
            for camera in cameras:
                camera.send(START + step * SECOND // 10, image, ("a",), [[20, 20, 16, 16]])

        self._expect(set(CAMERAS), topic, send)

    def expect_frames_of(self, camera: str, topic: str) -> None:
        """Wait for a fused frame of a camera that somebody else plays."""
        self._expect({camera}, topic, lambda step: None)

    def _expect(self, cameras: set[str], topic: str, send: Callable[[int], None]) -> None:
        heard: set[str] = set()
        self.node.create_subscription(
            Detection2DArray, topic, lambda message: heard.add(message.header.frame_id), 10
        )
        end, step = time.monotonic() + TIMEOUT, 0
        while heard != cameras and time.monotonic() < end:
            send(step)
            step += 1
            rclpy.spin_once(self.node, timeout_sec=0.2)
        self.assertEqual(heard, cameras)
