"""Rendering a drive on several cores."""

import signal
from contextlib import closing
from dataclasses import replace

import pytest

from lla_fusion_ros.demo.run_demo import render
from lla_fusion_ros.signworld import Drive, demo_drive


@pytest.mark.timeout(60)
def test_rendering_ends_early_even_where_the_parent_catches_sigterm():
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # as rclpy does
    try:
        with closing(render(Drive(replace(demo_drive(0).settings, duration=4.0)), workers=2)) as frames:
            assert next(frames).image.any()
    finally:
        signal.signal(signal.SIGTERM, before)
