"""Where faults are injected: an own DDS domain, the processes on it, and what they say about themselves."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.signals import SignalHandlerOptions

from faults.link import Link
from lla_fusion_ros.types.resources import find_resource
from support.camera import stamp_of
from support.domains import reserved_domain
from support.processes import RosProcess, child_environment, python_command
from support.ros import RosGraph, ros_arguments

PATIENCE = 100.0  # seconds; only what never comes takes so long, also on a machine with better things to do
# As docs/vehicle.md asks for: a raw image does not fit into the shared memory that Fast DDS takes by itself,
# which then forgets what others have not read yet, and sends it again after up to 3 s.
PROFILE, PROFILE_VARIABLES = (
    "config/fastdds.xml",
    ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"),
)
MODULES = {
    "perception": "lla_fusion_ros.ros perception",
    "crop_classifier": "lla_fusion_ros.ros crop_classifier",
    "class_fusion": "lla_fusion_ros.ros class_fusion",
}


class Stage:
    """A domain on this machine alone, and the processes and nodes on it; all end with the `with` block.

    Args:
        link: joins it with a second computer; without one, everything stays on localhost.
    """

    def __init__(self, link: Link | None = None) -> None:
        self._exits = ExitStack()
        self.link = link
        self.processes: list[RosProcess] = []
        self._started = 0

    def __enter__(self) -> Stage:
        try:
            return self._enter()
        except BaseException:
            self._exits.close()
            raise

    def _enter(self) -> Stage:
        self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="faults_")))
        if self.link is not None:
            self._exits.enter_context(self.link)
        domain = self._exits.enter_context(reserved_domain())
        surroundings = {
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST" if self.link is None else "SUBNET",
            "ROS_LOG_DIR": str(self.folder / "ros_log"),
            **dict.fromkeys(PROFILE_VARIABLES, str(find_resource(PROFILE))),
        }
        before = {key: os.environ.get(key) for key in surroundings}
        self._exits.callback(_restore, before)
        os.environ.update(surroundings)
        # signals are ours: rclpy would only shut itself down, and Ctrl-C must end the processes too
        rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self._exits.callback(rclpy.try_shutdown)
        self.graph = RosGraph(self.processes)
        self._exits.callback(self.graph.close)
        self._exits.callback(self._end_all)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def start(
        self,
        target: str | Path,
        name: str,
        *arguments: str,
        params: Mapping[str, Any] | None = None,
        remap: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> RosProcess:
        """A process on this domain; `prefix` is a command that starts it, in other surroundings."""
        self._started += 1
        words = [*arguments, *ros_arguments(params or {}, remap or {})]
        command = [*prefix, *python_command(target, words)]
        log = self.folder / f"{self._started}_{name}.log"
        process = RosProcess(command, name, log, child_environment(env))
        self.processes.append(process)
        return process

    def forget(self, process: RosProcess) -> None:
        """It is gone, and that is as it should be."""
        self.processes.remove(process)

    def _end_all(self) -> None:
        for process in reversed(self.processes):
            if process.popen.poll() is None:
                process.popen.terminate()
                process.popen.send_signal(signal.SIGCONT)  # one that was stopped could not end
        for process in self.processes:
            try:
                process.popen.wait(PATIENCE / 10)
            except Exception:  # whatever holds it, it is ours to end
                process.popen.kill()
                process.popen.wait()


class Diagnosed:
    """What the nodes say on /diagnostics: the newest status of each name."""

    def __init__(self, graph: RosGraph, node: Any) -> None:
        self._graph = graph
        self._statuses: dict[str, tuple[int, Any]] = {}
        node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 100)

    def _hear(self, message: Any) -> None:
        for status in message.status:
            self._statuses[status.name] = (stamp_of(message), status)

    def fresh(self, nodes: Sequence[str]) -> None:
        """Wait until each of the nodes has reported on everything up to now."""
        asked = time.time_ns()
        # a report made under a clock that ran ahead (use_sim_time) is not one of the time to come
        self._statuses = {
            name: (min(stamp, asked), status) for name, (stamp, status) in self._statuses.items()
        }
        self._graph.spin_until(
            lambda: all(self._statuses.get(name, (0, None))[0] > asked for name in nodes),
            timeout=PATIENCE,
            what=f"/diagnostics of {', '.join(nodes)}",
        )

    def counters(self, node: str, camera: str) -> Counter[str]:
        """All whole numbers that a node tells about a camera."""
        values = self.values(node, camera)
        return Counter({key: int(value) for key, value in values.items() if value.isdigit()})

    def of_node(self, node: str) -> dict[str, str]:
        """What a node tells about itself."""
        _, status = self._statuses.get(node, (0, None))
        return {} if status is None else {pair.key: pair.value for pair in status.values}

    def values(self, node: str, camera: str) -> dict[str, str]:
        """All that a node tells about a camera."""
        _, status = self._statuses.get(f"{node}: camera {camera}", (0, None))
        return {} if status is None else {pair.key: pair.value for pair in status.values}

    def level_and_message(self, node: str, camera: str) -> tuple[int, str]:
        _, status = self._statuses.get(f"{node}: camera {camera}", (0, None))
        return (-1, "") if status is None else (int.from_bytes(status.level, "little"), status.message)


def memory_mb(process: RosProcess) -> float:
    """Resident memory of a process, 0 where it has ended."""
    try:
        return float(psutil.Process(process.popen.pid).memory_info().rss) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def _restore(before: Mapping[str, str | None]) -> None:
    for key, value in before.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
