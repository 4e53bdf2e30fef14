"""`recorder`: writes what the fusion publishes into a bag, and tells on standard output what it hears.

Each line is a JSON object; the demo draws its live table from them. Not an executable for vehicles, which
have `ros2 bag record`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.utilities import remove_ros_args

from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import CdrReader
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.status import parse_diagnostics
from lla_fusion_ros.ros.process_life import HALF_MADE, Ending, begin, quiet_end
from lla_fusion_ros.ros.publishers import TYPES
from lla_fusion_ros.types.errors import LlaFusionError
from lla_fusion_ros.types.printable import printable

try:
    from tf2_msgs.msg import TFMessage

    _TRANSFORMS = {contract.TRANSFORMS_TYPE: TFMessage}
except ImportError:  # then there is no geometry to record
    _TRANSFORMS = {}

_DEPTH = 1000


class Recorder(Node):
    """Records the output topics of the given cameras; use_sim_time makes it record in the bag's time."""

    def __init__(self, writer: BagWriter, cameras: Sequence[str], tell: Callable[[dict], None]) -> None:
        super().__init__("recorder")
        self._writer = writer
        self._tell = tell
        self._early: list[tuple[str, bytes]] = []  # before there is a time
        self._newest = 0
        self._listen(contract.FUSED_CLASSES, contract.DETECTIONS, self._fused)
        self._listen(contract.OOD_WARNINGS, contract.DIAGNOSTICS, self._warnings)
        self._listen(contract.TRACK_STATUS, contract.DIAGNOSTICS, self._states)
        self._listen(contract.LABELS, contract.LABEL_INFO, lambda _: tell({"event": "labels"}), latched=True)
        for camera in cameras:
            self._listen(contract.views_topic(camera), contract.DETECTIONS, self._views(camera))
            self._listen(contract.embeddings_topic(camera), contract.IMAGE)
            self._listen(contract.views_info_topic(camera), contract.VISION_INFO, latched=True)
            self._listen(contract.camera_info_topic(camera), contract.CAMERA_INFO)
        if _TRANSFORMS:
            self._listen(contract.TRANSFORMS, contract.TRANSFORMS_TYPE)
            self._listen(contract.STATIC_TRANSFORMS, contract.TRANSFORMS_TYPE, latched=True)

    def _listen(
        self, topic: str, type_name: str, then: Callable[[bytes], None] | None = None, latched: bool = False
    ) -> None:
        name = "/" + topic.lstrip("/")
        self._writer.add(name, type_name, latched)
        qos = QoSProfile(depth=10 if latched else _DEPTH, reliability=ReliabilityPolicy.RELIABLE)
        if latched:
            qos.durability = DurabilityPolicy.TRANSIENT_LOCAL

        def heard(data: bytes) -> None:
            self._record(name, data, stamped=type_name != contract.TRANSFORMS_TYPE)
            if then is not None:
                then(data)

        self.create_subscription((TYPES | _TRANSFORMS)[type_name], topic, heard, qos, raw=True)

    def _record(self, topic: str, data: bytes, stamped: bool) -> None:
        # a simulated clock may be found late, or never: then the stamps of the messages tell the time
        if stamped:
            self._newest = max(self._newest, CdrReader(data).header().stamp)
        now = self.get_clock().now().nanoseconds or self._newest
        if not now:
            self._early.append((topic, data))
            return
        for early, message in self._early:
            self._writer.write(early, now, message)
        self._early.clear()
        self._writer.write(topic, now, data)

    def _fused(self, data: bytes) -> None:
        detections = parse_detections(data, with_scores=True)
        tracks = [
            {
                "id": track,
                "class": _class(scores[0][0]),
                "p": scores[0][1],
                "pmf": [score for _, score in scores],
            }
            for track, scores in zip(detections.ids, detections.scores, strict=True)
        ]
        self._tell({"event": "fused", "stamp": detections.header.stamp, "tracks": tracks})

    def _views(self, camera: str) -> Callable[[bytes], None]:
        def tell(data: bytes) -> None:
            detections = parse_detections(data, with_scores=True)
            seen = [
                {"id": track, "class": _class(scores[0][0]), "p": scores[0][1]}
                for track, scores in zip(detections.ids, detections.scores, strict=True)
            ]
            self._tell({"event": "views", "camera": camera, "tracks": seen})

        return tell

    def _warnings(self, data: bytes) -> None:
        _, statuses = parse_diagnostics(data)
        told = [
            {
                "id": status.name.removeprefix("track "),
                "level": status.level,
                "reason": status.values.get("reason", ""),
            }
            for status in statuses
        ]
        self._tell({"event": "warnings", "tracks": told})

    def _states(self, data: bytes) -> None:
        header, statuses = parse_diagnostics(data)
        told = [
            {
                "id": status.name.removeprefix("track "),
                "members": status.values.get("members", "").split(),
                "changed": status.values.get("class changed") == "yes",
            }
            for status in statuses
        ]
        self._tell({"event": "states", "stamp": header.stamp, "tracks": told})


def _class(said: str) -> int | str:
    """A number, or the name where outputs have names."""
    return int(said) if said.isdecimal() else said


def _say(line: dict) -> None:
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def main(args: Sequence[str] | None = None) -> int:
    arguments = sys.argv if args is None else ["recorder", *args]
    parser = argparse.ArgumentParser(prog="recorder", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="bag folder to write")
    parser.add_argument("--cameras", nargs="+", required=True)
    options = parser.parse_args(remove_ros_args(arguments)[1:])
    try:
        begin(arguments)
    except LlaFusionError as error:
        print(f"recorder: {printable(str(error))}", file=sys.stderr)
        return 1
    ending, node, code = Ending(), None, 0
    try:
        with BagWriter(options.out, overwrite=True) as writer, quiet_end():
            executor = SingleThreadedExecutor()
            node = Recorder(writer, options.cameras, _say)
            executor.add_node(node)
            _say({"event": "ready"})
            while rclpy.ok():  # a signal may strike where it does not wake `spin`, and no timer does
                executor.spin_once(timeout_sec=0.5)
    except LlaFusionError as error:
        print(f"recorder: {printable(str(error))}", file=sys.stderr)
        code = 1
    own = HALF_MADE if node is None else ("the node and its DDS participant", node.destroy_node)
    ending.finish(code, own)
