"""How every node's `main` runs: start, spin, and a quiet exit on SIGINT, SIGTERM or shutdown."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from rclpy.executors import SingleThreadedExecutor

from lla_fusion_ros.errors import LlaFusionError
from lla_fusion_ros.ros.ending import Ending
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.session import begin, quiet_end
from lla_fusion_ros.ros.settings import NodeSettings
from lla_fusion_ros.ros.stop_signals import STOP


def run(make_node: Callable[[], ManagedNode], args: list[str] | None = None) -> None:
    """Run one node until it is told to end; exit code 1, with a sentence, where it refuses to start."""
    try:
        begin(args)
    except LlaFusionError as error:
        sys.exit(f"cannot start: {error}")
    ending = Ending()
    executor, node, code = None, None, 0
    try:
        with quiet_end():
            executor = SingleThreadedExecutor()
            node = make_node()
            if node.parameters.of(NodeSettings).autostart:
                _start(node)
            executor.add_node(node)
            executor.spin()
    except LlaFusionError as error:
        print(f"cannot start: {error}", file=sys.stderr)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    steps: list[tuple[str, Callable[[], object]]] = []
    if executor is not None:
        steps.append(("the executor", executor.shutdown))
    if node is not None:
        steps += [("the worker thread", node.stop), ("the node and its DDS participant", node.destroy_node)]
    ending.finish(code, *steps)


def _start(node: ManagedNode) -> None:
    """Load the model; that takes seconds, and a signal need not wait for it."""
    try:
        STOP.interrupt(True)
        node.start()
    finally:
        STOP.interrupt(False)
