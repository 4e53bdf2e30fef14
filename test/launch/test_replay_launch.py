"""replay.launch.py on a small bag, launched for real; skipped where there is no launch_ros."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_image
from support.camera import SECOND, START
from support.launching import GraphTestCase, skip_without_launch, small_model, test_description

skip_without_launch()

import launch_testing  # noqa: E402


def small_bag() -> str:
    """Three seconds of one camera."""
    path = Path(tempfile.mkdtemp()) / "bag"
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    with BagWriter(path) as writer:
        writer.add("/left/image", contract.IMAGE)
        writer.add("/left/detections", contract.DETECTIONS)
        for step in range(30):
            header = Header(START + step * SECOND // 10, "left")
            writer.write("/left/image", header.stamp, write_image(header, image, "rgb8"))
            boxes = write_detections(header, ["a"], np.array([[20.0, 20, 0, 16, 16]]))
            writer.write("/left/detections", header.stamp, boxes)
    return str(path)


@pytest.mark.launch_test
def generate_test_description():
    return test_description(
        "replay.launch.py", bag=small_bag(), model=small_model(), cameras="left", loop="true"
    )


class TestFrames(GraphTestCase):
    def test_frames_of_the_bag_are_fused(self):
        self.expect_frames_of("left", "/fused_classes")


@launch_testing.post_shutdown_test()
class TestExit(GraphTestCase):
    def test_all_processes_end_cleanly(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
