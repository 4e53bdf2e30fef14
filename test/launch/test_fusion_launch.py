"""fusion.launch.py, launched for real; skipped where there is no launch_ros."""

from __future__ import annotations

import pytest

from support.launching import CAMERAS, GraphTestCase, skip_without_launch, small_model, test_description

skip_without_launch()

import launch_testing  # noqa: E402


@pytest.mark.launch_test
def generate_test_description():
    return test_description(
        "fusion.launch.py",
        model=small_model(),
        cameras=",".join(CAMERAS),
        device="cpu",
        identity="camera",
        image_topic="/{camera}/image",
        detections_topic=",".join(f"/{camera}/detections" for camera in CAMERAS),
        box_frame="image",
        box_size="640,640",
    )


class TestFrames(GraphTestCase):
    def test_frames_of_both_cameras_are_fused(self):
        self.expect_fused_frames("/fused_classes")


@launch_testing.post_shutdown_test()
class TestExit(GraphTestCase):
    def test_all_processes_end_cleanly(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
