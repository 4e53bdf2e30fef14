"""What a node tells about itself: `/diagnostics`, and what its log says of its cameras, each thing once."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.status import write_diagnostics
from lla_fusion_ros.ros.node_settings import NodeSettings
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.health import Health
from lla_fusion_ros.types.printable import printable

if TYPE_CHECKING:
    from lla_fusion_ros.ros.managed_node import ManagedNode

LOOK_EVERY = 0.25  # seconds between looks at silent cameras and QoS
REPORT_EVERY = 1.0
REPORTS_TO_TELL = 3  # of boxes without their images, one after the other, before the log tells
_NUMBERS_AND_NAMES = re.compile(r"[\d.]+|'[^']*'")  # which change while what is told stays the same


class Reporting:
    """Attributes:
    about: the model and its device, for /diagnostics.
    crowded: topics on which two publishers send, and which.
    """

    def __init__(self, node: ManagedNode) -> None:
        self.about: dict[str, str] = {}
        self.crowded: dict[str, str] = {}
        self._node = node
        self._logger = node.get_logger()
        self._health: Health | None = None  # while a model is loaded
        self._silent: frozenset[str] = frozenset()
        self._next_report = 0.0
        self._told: set[str] = set()
        self._connections: dict[str, str] = {}  # by camera
        self._unpaired: Counter[str] = Counter()  # by camera: reports in a row
        self._diagnostics = node.create_publisher(DiagnosticArray, contract.NODE_DIAGNOSTICS, 10)

    def begin(self) -> None:
        """The node has its model."""
        node = self._node
        silent_after = node.parameters.of(NodeSettings).silent_after
        name = node.get_fully_qualified_name().lstrip("/")
        self._health = Health(name, node.parameters.cameras, node.tally, silent_after)

    def end(self) -> None:
        self._health = None

    def hear(self, camera: str) -> None:
        """A message of this camera came."""
        if self._health is not None:
            self._health.hear(camera, time.monotonic())

    def finish(self, frame: FusedFrame | ViewFrame, begun: float) -> float:
        """A frame is out, and work on it began then; the time now, as `time.monotonic` has it."""
        now = time.monotonic()
        late = (self._node.get_clock().now().nanoseconds - frame.header.stamp) / 1e9
        if self._health is not None:
            self._health.finish(late, now - begun)
        self._connected(frame.camera, self._node.connection(frame.camera))
        return now

    def look(self) -> frozenset[str] | None:
        """Cameras from which nothing comes; None while no model is loaded."""
        return None if self._health is None else self._health.silent(time.monotonic())

    def crowd(self, crowded: dict[str, str]) -> None:
        """Which publishers mix their messages on a topic, by topic."""
        self.crowded = crowded
        for topic, nodes in crowded.items():
            self.warn_once(
                topic, f"two publishers on {topic} ({nodes}): their messages mix, stop one of them"
            )

    def report(self, silent: frozenset[str]) -> None:
        """Send /diagnostics where it is time, or where a camera has fallen silent or come back."""
        now = time.monotonic()
        if now < self._next_report and silent == self._silent:
            return
        self._silent = silent
        self._next_report = now + REPORT_EVERY - LOOK_EVERY / 2
        node, health, perception = self._node, self._health, self._node.perception
        assert health is not None and perception is not None
        stamp = node.get_clock().now().nanoseconds  # first: everything up to it is in the report
        queue, engine, cameras = perception.queue, perception.engine, node.parameters.cameras
        values = {"state": node.state_name, **self.about, "waiting frames": str(len(queue.ready))}
        if engine is not None:
            values |= {"fuser": engine.fuser.name, "tracks": str(engine.tracks)}
            values |= perception.joining.counts
        if self.crowded:
            values["two publishers on"] = ", ".join(self.crowded)
        waiting = {camera: queue.waiting(camera) for camera in cameras}
        hints = {camera: queue.hint(camera) for camera in cameras}
        wiring = {camera: node.wiring(camera) for camera in cameras}
        troubles = node.troubles()
        statuses = health.report(now, values, troubles, waiting, hints, wiring)
        self._tell(troubles, health.unpaired)
        self._diagnostics.publish(write_diagnostics(Header(stamp, ""), statuses))

    def warn_once(self, key: str, message: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._logger.warning(printable(message))  # of names from messages

    def _connected(self, camera: str, how: str) -> None:
        """One line at the first frame of a camera, and one where it is decided otherwise later."""
        kind = _NUMBERS_AND_NAMES.sub("", how)
        if how and self._connections.get(camera) != kind:
            begins = "from now on" if camera in self._connections else "first frame"
            self._connections[camera] = kind
            self._logger.info(printable(f"camera {camera}, {begins}: {how}"))

    def _tell(self, troubles: Mapping[str, str], unpaired: Mapping[str, str]) -> None:
        """By camera: what is wrong, and why boxes found no image since the report before."""
        for camera, trouble in troubles.items():
            kind = _NUMBERS_AND_NAMES.sub("", trouble)
            self.warn_once(f"{camera}: {kind}", f"camera {camera}: {trouble}")
        for camera, problem in unpaired.items():
            self._unpaired[camera] = self._unpaired[camera] + 1 if problem else 0
            if self._unpaired[camera] == REPORTS_TO_TELL:
                self.warn_once(f"{camera} unpaired", f"camera {camera}: {problem}")
