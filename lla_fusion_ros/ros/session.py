"""How every executable begins and ends: a place for logs, and a quiet end wherever a signal strikes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException


def begin(args: Sequence[str] | None = None) -> None:
    """`rclpy.init`, also where the home cannot be written: ROS would refuse to start for want of a log."""
    if not _can_log():
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros_log_")
        print(
            f"the usual log folder cannot be written, logs go to {os.environ['ROS_LOG_DIR']}", file=sys.stderr
        )
    rclpy.init(args=None if args is None else list(args))


@contextmanager
def quiet_end() -> Iterator[None]:
    """Leave the block without a word when ROS has been shut down.

    A signal shuts ROS down at once, in whatever call it finds the program; rclpy then raises what that call
    happens to raise without a context (`failed to initialize wait set`, say).
    """
    try:
        yield
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        if rclpy.ok():
            raise


def _can_log() -> bool:
    """Whether the folder that ROS will log to exists, or can be made, and can be written."""
    home = os.environ.get("ROS_HOME") or "~/.ros"
    folder = Path(os.environ.get("ROS_LOG_DIR") or Path(home) / "log").expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
