"""Publishers by topic, fed with ready CDR bytes."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from vision_msgs.msg import Detection2DArray, LabelInfo, VisionInfo

from lla_fusion_ros.messages import contract
from lla_fusion_ros.stream.frame_messages import Outgoing

TYPES = {
    contract.IMAGE: Image,
    contract.DETECTIONS: Detection2DArray,
    contract.LABEL_INFO: LabelInfo,
    contract.VISION_INFO: VisionInfo,
    contract.DIAGNOSTICS: DiagnosticArray,
}


class Outputs:
    """The output topics of a managed node; they speak only while the node is active."""

    def __init__(self, node: LifecycleNode, depth: int) -> None:
        self._node = node
        self._depth = depth
        self._publishers: dict[str, Any] = {}

    def advertise(self, topic: str, type_name: str) -> None:
        qos = QoSProfile(depth=self._depth, reliability=ReliabilityPolicy.RELIABLE)
        self._publishers[topic] = self._node.create_lifecycle_publisher(TYPES[type_name], topic, qos)

    def latch(self, message: Outgoing) -> None:
        """Publish once, also to those who come later; the same in every state of the node."""
        qos = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        publisher = self._node.create_publisher(TYPES[message.type], message.topic, qos)
        self._publishers[message.topic] = publisher
        publisher.publish(message.data)

    def publish(self, message: Outgoing) -> None:
        self._publishers[message.topic].publish(message.data)

    def wanted(self, topic: str) -> bool:
        """Whether anybody listens."""
        return bool(self._publishers[topic].get_subscription_count())

    def close(self) -> None:
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers.clear()
