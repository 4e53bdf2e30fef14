"""Starts a node. Its imports take seconds (torch, ROS), and Ctrl-C must be as quiet then as later."""

from __future__ import annotations

import importlib
import os
import resource
import sys

from lla_fusion_ros.memory import share_one_heap
from lla_fusion_ros.ros.stop_signals import STOP

LEAST_OPEN_FILES = 64  # Python's imports and DDS take about 30, each further node on the graph some more


def start(module: str, node_class: str, args: list[str] | None) -> None:
    """Import the node and run it until it is told to end."""
    STOP.install()
    check_open_files()
    share_one_heap()  # before torch and DDS start their threads
    try:
        STOP.interrupt(True)
        from lla_fusion_ros.ros.run import run

        make_node = getattr(importlib.import_module(module), node_class)
        STOP.interrupt(False)
    except KeyboardInterrupt:
        os._exit(0)  # an interpreter that clears up has no handlers any more: a second signal would kill it
    run(make_node, args)


def check_open_files() -> None:
    """End with a sentence where too few files may be open; else imports and DDS fail, each in its way."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < LEAST_OPEN_FILES:
        sys.exit(
            f"cannot start: {allowed} files may be open at once, at least {LEAST_OPEN_FILES} are needed; "
            "set `ulimit -n 1024`"
        )
