"""The executables: `ros2 run lla_fusion_ros NAME`, or `python -m lla_fusion_ros.ros NAME` without an install.

Nothing here imports ROS or torch at once: that takes seconds, in which Ctrl-C must be as quiet as later, and
fails in odd ways where too few files may be open.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Callable
from typing import Any

from lla_fusion_ros.ros.stop_signals import STOP
from lla_fusion_ros.types.errors import missing_extra
from lla_fusion_ros.types.memory import share_one_heap

LEAST_OPEN_FILES = 64  # Python's imports and DDS take about 30, each further node on the graph some more


def perception(args: list[str] | None = None) -> None:
    _run_node("lla_fusion_ros.ros.perception", "PerceptionNode", args)


def crop_classifier(args: list[str] | None = None) -> None:
    _run_node("lla_fusion_ros.ros.crop_classifier", "CropClassifierNode", args)


def class_fusion(args: list[str] | None = None) -> None:
    _run_node("lla_fusion_ros.ros.class_fusion", "ClassFusionNode", args)


def bag_player(args: list[str] | None = None) -> int:
    try:
        (main,) = load(("lla_fusion_ros.ros.bag_player", "main"))
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("rosbags", "lz4", "backports"):
            raise
        sys.exit(f"bag_player: {missing_extra(str(error.name), 'bags')}")  # a vehicle does without
    return int(main(args))


def recorder(args: list[str] | None = None) -> int:
    """For the demo and the tests; vehicles have `ros2 bag record`."""
    (main,) = load(("lla_fusion_ros.ros.recorder", "main"))
    return int(main(args))


def _run_node(module: str, node_class: str, args: list[str] | None) -> None:
    run, make_node = load(("lla_fusion_ros.ros.process_life", "run"), (module, node_class))
    run(make_node, args)


def load(*names: tuple[str, str]) -> list[Callable[..., Any]]:
    """Import what an executable is made of: module and name of each part."""
    STOP.install()
    check_open_files()
    share_one_heap()  # before torch and DDS start their threads
    try:
        with STOP.interrupts():
            return [getattr(importlib.import_module(module), name) for module, name in names]
    except KeyboardInterrupt:
        os._exit(0)  # an interpreter that clears up has no handlers any more: a second signal would kill it


def check_open_files() -> None:
    """End with a sentence where too few files may be open; else imports and DDS fail, each in its way."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < LEAST_OPEN_FILES:
        sys.exit(
            f"cannot start: {allowed} files may be open at once, at least {LEAST_OPEN_FILES} are needed; "
            "set `ulimit -n 1024`"
        )
