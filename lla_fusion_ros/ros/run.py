"""How every node's `main` runs: start, spin, and a quiet exit on SIGINT, SIGTERM or shutdown."""

from __future__ import annotations

import sys
from collections.abc import Callable

import rclpy
from rclpy.executors import SingleThreadedExecutor

from lla_fusion_ros.errors import LlaFusionError
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.session import begin, quiet_end
from lla_fusion_ros.ros.settings import NodeSettings


def run(make_node: Callable[[], ManagedNode], args: list[str] | None = None) -> None:
    """Run one node until it is told to end; exit code 1, with a sentence, where it refuses to start."""
    begin(args)
    node = None
    refused = ""
    try:
        with quiet_end():
            node = make_node()
            if node.parameters.of(NodeSettings).autostart:
                node.start()
            executor = SingleThreadedExecutor()
            executor.add_node(node)
            executor.spin()
    except LlaFusionError as error:
        refused = str(error)
    finally:
        if node is not None:
            node.stop()
            node.destroy_node()
        rclpy.try_shutdown()
    if refused:
        sys.exit(f"cannot start: {refused}")
