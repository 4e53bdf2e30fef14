"""Fixtures for all tests. Real-ROS fixtures are described at the top of `support/ros.py`."""

from __future__ import annotations

import importlib.util
import os

# A test of numbers must not fight its neighbours for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

pytest_plugins = ["support.data"]
collect_ignore: list[str] = []
if importlib.util.find_spec("rclpy") is not None:
    pytest_plugins.append("support.ros")
else:  # the ROS-free tests also run where there is no ROS
    collect_ignore += ["launch", "ros"]
