"""How every executable begins and ends: a place for logs, and a quiet end wherever a signal strikes."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.utilities import remove_ros_args

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.ros.stop_signals import STOP


def begin(args: Sequence[str] | None = None) -> None:
    """`rclpy.init`, also where the home cannot be written: ROS would refuse to start for want of a log.

    Arguments that ROS does not take (an unknown log level, a params file that is not there) are refused.
    """
    STOP.install()
    if not _can_log():
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros_log_")
        print(
            f"the usual log folder cannot be written, logs go to {os.environ['ROS_LOG_DIR']}", file=sys.stderr
        )
    with _refusing_arguments():
        rclpy.init(args=None if args is None else list(args))


def own_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line without the program's name and without what is for ROS."""
    with _refusing_arguments():
        return remove_ros_args(list(arguments))[1:]


@contextmanager
def _refusing_arguments() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # rcl's errors derive from it
        reason = re.sub(r"^failed to initialize rcl: |, at \S+:\d+", "", str(error))  # places in rcl's source
        raise InputError(f"ROS refuses its arguments: {reason}") from None


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
        if rclpy.ok() and not STOP.came:
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
