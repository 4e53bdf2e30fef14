"""How every executable begins, runs and ends: a place for logs, a quiet exit wherever a signal strikes, and
nothing that may wait for ever."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import NoReturn

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.utilities import remove_ros_args

from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.node_settings import NodeSettings
from lla_fusion_ros.ros.stop_signals import STOP
from lla_fusion_ros.types.errors import InputError, LlaFusionError
from lla_fusion_ros.types.printable import printable

KEPT_MEMORY = 64 << 20  # bytes, of the images of a few frames
PATIENCE = 3.0  # seconds from the signal, or from the first step of freeing
_GRACE = 0.5
_LOOK_EVERY = 0.2
# A step of `finish`: nobody holds a node whose constructor failed, and it would stay in the graph for 20 s.
HALF_MADE = ("a half-made node", gc.collect)


def run(make_node: Callable[[], ManagedNode], args: list[str] | None = None) -> None:
    """Run one node until it is told to end; exit code 1, with a sentence, where it refuses to start."""
    try:
        begin(args)
    except LlaFusionError as error:
        sys.exit(f"cannot start: {printable(str(error))}")
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
        print(f"cannot start: {printable(str(error))}", file=sys.stderr)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    steps: list[tuple[str, Callable[[], object]]] = []
    if executor is not None:
        steps.append(("the executor", executor.shutdown))
    if node is None:
        steps.append(HALF_MADE)
    else:
        steps += [("the worker thread", node.stop), ("the node and its DDS participant", node.destroy_node)]
    ending.finish(code, *steps)


def _start(node: ManagedNode) -> None:
    """Load the model; that takes seconds, and a signal need not wait for it."""
    with STOP.interrupts():
        node.start()


def begin(args: Sequence[str] | None = None) -> None:
    """`rclpy.init`, also where the home cannot be written: ROS would refuse to start for want of a log.

    Arguments that ROS does not take (an unknown log level, a params file that is not there) are refused.
    """
    STOP.install()
    _keep_memory()
    if not _can_log():
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros_log_")
        print(
            f"the usual log folder cannot be written, logs go to {os.environ['ROS_LOG_DIR']}", file=sys.stderr
        )
    with _refusing_arguments():
        rclpy.init(args=None if args is None else list(args))
    if STOP.came:  # before anybody could tell ROS
        rclpy.try_shutdown()


def _keep_memory() -> None:
    """Keep freed memory for the next frame: glibc would hand the pages of every large image back, and get
    them anew from the kernel, which takes longer than to copy it."""
    trim_threshold, mmap_threshold = -1, -3  # of malloc.h
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(trim_threshold, KEPT_MEMORY)
        mallopt(mmap_threshold, KEPT_MEMORY // 2)


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


class Ending:
    """Watches from now on: once ROS is shut down, the process has `PATIENCE` seconds to end.

    Fast DDS may hang while it frees a participant, and rclpy holds Python's lock meanwhile: no thread of
    Python can run then. `faulthandler` has a thread that needs no lock; it prints where everything stands.
    """

    def __init__(self) -> None:
        self._context = rclpy.get_default_context()
        self._doing = "the work under way"
        self._began = Event()
        Thread(target=self._watch, name="watch over the end", daemon=True).start()

    def finish(self, code: int, *steps: tuple[str, Callable[[], object]]) -> NoReturn:
        """Free everything, each step with the name of what it frees, and end the process.

        It ends without the interpreter's own clearing up, which would wait for threads of libraries.
        """
        self._began.set()
        self._limit()
        for self._doing, free in (*steps, ("ROS", rclpy.try_shutdown)):
            try:
                free()
            except Exception:
                print(f"{self._doing} could not be freed:\n{traceback.format_exc()}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _watch(self) -> None:
        while self._context.ok() and not self._began.wait(_LOOK_EVERY):
            pass
        if not self._began.is_set():
            self._limit()
        time.sleep(PATIENCE)
        os.write(2, f"not freed within {PATIENCE:g} s: {self._doing}; the process ends by force\n".encode())
        os._exit(1)

    def _limit(self) -> None:
        faulthandler.dump_traceback_later(PATIENCE + _GRACE, exit=True, file=2)
