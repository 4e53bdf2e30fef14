"""The fused side of a node: labels, fused classes, warnings, and what the log should say."""

from __future__ import annotations

from collections.abc import Sequence

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine import FusionEngine
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.settings import NodeSettings
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.outputs import cleared_message, fused_messages, label_message
from lla_fusion_ros.tracks import TrackKey
from lla_fusion_ros.wire import contract


class FusedOutput:
    """Publishes fused frames of one bundle."""

    def __init__(self, node: ManagedNode, bundle: Bundle) -> None:
        self._node = node
        self.class_names = bundle.class_names
        node.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)
        node.outputs.advertise(contract.OOD_WARNINGS, contract.DIAGNOSTICS)
        # last: who hears the labels finds the rest there
        node.outputs.latch(label_message(bundle.class_names, node.get_clock().now().nanoseconds))

    def publish(self, fused: FusedFrame) -> None:
        limit = self._node.parameters.of(NodeSettings).max_hypotheses
        for message in fused_messages(fused, self.class_names, limit):
            self._node.outputs.publish(message)
        if fused.result.jumped:
            camera = fused.frame.camera
            self._node.get_logger().warning(
                f"camera {camera}: the clock jumped back, all tracks were cleared"
            )
        for note in fused.result.notes:
            self._node.tell_once(note, note)

    def clear(self, cleared: Sequence[TrackKey]) -> None:
        """Tracks were forgotten between frames; these were warned of."""
        if cleared:
            self._node.outputs.publish(cleared_message(cleared, self._node.get_clock().now().nanoseconds))


def describe_engine(engine: FusionEngine) -> dict[str, str]:
    """What `/diagnostics` says about fusion."""
    return {"fuser": engine.fuser.name, "tracks": str(engine.tracks)}
