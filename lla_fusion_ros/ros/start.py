"""Starts a node. Its imports take seconds (torch, ROS), and Ctrl-C must be as quiet then as later."""

from __future__ import annotations

import importlib
import sys

from lla_fusion_ros.memory import share_one_heap


def start(module: str, node_class: str, args: list[str] | None) -> None:
    """Import the node and run it until it is told to end."""
    share_one_heap()  # before torch and DDS start their threads
    try:
        from lla_fusion_ros.ros.run import run

        make_node = getattr(importlib.import_module(module), node_class)
    except KeyboardInterrupt:
        sys.exit(0)
    run(make_node, args)
