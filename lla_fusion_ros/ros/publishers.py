"""What a node publishes: ready CDR bytes by topic, and the fused side with what the log should say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from vision_msgs.msg import Detection2DArray, Detection3DArray, LabelInfo, VisionInfo

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.messages import contract
from lla_fusion_ros.reliance.decisions import read_costs
from lla_fusion_ros.ros.annotations import ImageAnnotations, image_annotations
from lla_fusion_ros.ros.compat import NO_EVENTS
from lla_fusion_ros.ros.node_settings import NodeSettings, StatementSettings
from lla_fusion_ros.stream.frame_messages import (
    Outgoing,
    annotations_of,
    camera_fused_message,
    cleared_message,
    fused_messages,
    label_message,
)
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings

if TYPE_CHECKING:
    from lla_fusion_ros.ros.managed_node import ManagedNode
    from lla_fusion_ros.stream.scores import ScoreReader

BY_APPEARANCE = (
    "classes get their numbers in the order in which the detector names them, another one in every run: set "
    "the parameter class_names to the detector's label file or to a list"
)
SAY_AGAIN = 10.0  # seconds between log lines about clock jumps
# Seconds that another publisher must be there before it is told of: DDS knows one that was killed for 20.
NOT_DEAD = 25.0
TYPES = {
    contract.IMAGE: Image,
    contract.COMPRESSED_IMAGE: CompressedImage,
    contract.DETECTIONS: Detection2DArray,
    contract.OBJECTS: Detection3DArray,
    contract.LABEL_INFO: LabelInfo,
    contract.VISION_INFO: VisionInfo,
    contract.DIAGNOSTICS: DiagnosticArray,
    contract.CAMERA_INFO: CameraInfo,
    **({} if ImageAnnotations is None else {contract.ANNOTATIONS: ImageAnnotations}),
}


class Outputs:
    """The output topics of a managed node; they speak only while the node is active."""

    def __init__(self, node: LifecycleNode, depth: int) -> None:
        self._node = node
        self._depth = depth
        self._publishers: dict[str, Any] = {}
        self._alone_at = 0.0  # when this node was last the only one that publishes fused classes

    def advertise(self, topic: str, type_name: str) -> None:
        qos = QoSProfile(depth=self._depth, reliability=ReliabilityPolicy.RELIABLE)
        self._publishers[topic] = self._node.create_lifecycle_publisher(
            TYPES[type_name], topic, qos, event_callbacks=NO_EVENTS
        )

    def latch(self, message: Outgoing) -> None:
        """Publish once, also to those who come later; the same in every state of the node."""
        qos = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        publisher = self._node.create_publisher(
            TYPES[message.type], message.topic, qos, event_callbacks=NO_EVENTS
        )
        self._publishers[message.topic] = publisher
        publisher.publish(message.data)

    def publish(self, message: Outgoing) -> None:
        self._publishers[message.topic].publish(message.data)

    def publish_object(self, topic: str, message: Any) -> None:
        """One whose bytes are not ready."""
        self._publishers[topic].publish(message)

    def wanted(self, topic: str) -> bool:
        """Whether anybody listens."""
        return bool(self._publishers[topic].get_subscription_count())

    def crowded(self, now: float) -> dict[str, str]:
        """The topic of the fused classes, where another node publishes on it too, and those nodes."""
        publisher = self._publishers.get(contract.FUSED_CLASSES)
        if publisher is None or self._node.count_publishers(publisher.topic_name) < 2:
            self._alone_at = now
        if publisher is None or now - self._alone_at < NOT_DEAD:
            return {}
        infos = self._node.get_publishers_info_by_topic(publisher.topic_name)
        return {publisher.topic_name: ", ".join(sorted(info.node_name for info in infos))}

    def close(self) -> None:
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers.clear()


class FusedOutput:
    """Publishes fused frames of one bundle: labels, fused classes, warnings."""

    def __init__(self, node: ManagedNode, bundle: Bundle, scores: ScoreReader | None = None) -> None:
        self._node = node
        self._scores = scores
        self._reserved = len(bundle.reserved)
        self._names = bundle.class_names
        node.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)
        node.outputs.advertise(contract.OOD_WARNINGS, contract.DIAGNOSTICS)
        for camera in node.parameters.cameras:
            node.outputs.advertise(contract.camera_fused_topic(camera), contract.DETECTIONS)
            if ImageAnnotations is not None:
                node.outputs.advertise(contract.annotations_topic(camera), contract.ANNOTATIONS)
        self._default, self._reliance = bundle.meta.default_fuser, bundle.reliance()
        costs = node.parameters.of(StatementSettings).costs
        if costs and bundle.is_open:
            raise InputError("parameter 'costs' needs to know the classes: set class_names, too")
        self._costs = read_costs(costs, bundle.class_names) if costs else None
        node.outputs.advertise(contract.TRACK_STATUS, contract.DIAGNOSTICS)
        node.outputs.advertise(contract.CLASS_SETS, contract.DETECTIONS)
        if self._costs is not None:
            node.outputs.advertise(contract.DECISIONS, contract.DETECTIONS)
        # last: who hears the labels finds the rest there
        node.outputs.latch(label_message(bundle.class_names, node.get_clock().now().nanoseconds))

    def class_names(self, fused: FusedFrame) -> Sequence[str]:
        """Of all that its distributions are over."""
        return self._names if self._scores is None else self._scores.names(fused.result.pmf.shape[1])

    def publish(self, fused: FusedFrame) -> None:
        names = self.class_names(fused)
        listing = self._node.parameters.of(NodeSettings).listing(names, self._reserved)
        if self._scores is not None:
            self._tell_labels(self._scores, names)
            listing = replace(listing, class_names=names)
        for message in fused_messages(fused, names, listing):
            self._node.outputs.publish(message)
        if self._node.outputs.wanted(contract.camera_fused_topic(fused.camera)):
            self._node.outputs.publish(camera_fused_message(fused, listing))
        self._annotate(fused, names)
        self._state(fused, names, listing.class_names is not None)
        if fused.result.jumped and not self._node.reporting.crowded:  # which has been said, and explains it
            self._node.get_logger().warning(
                f"camera {fused.camera}: the clock jumped back, all tracks were cleared; "
                f"/diagnostics counts further jumps",
                throttle_duration_sec=SAY_AGAIN,
            )
        for note in fused.result.notes:
            self._node.reporting.warn_once(note, note)

    def _annotate(self, fused: FusedFrame, names: Sequence[str]) -> None:
        topic, outputs = contract.annotations_topic(fused.camera), self._node.outputs
        if ImageAnnotations is not None and outputs.wanted(topic):
            drawn = annotations_of(fused, names)
            outputs.publish_object(topic, image_annotations(fused.header.stamp, drawn))

    def _tell_labels(self, scores: ScoreReader, names: Sequence[str]) -> None:
        """Labels again, where messages have named a class that was not met before."""
        if len(names) > len(self._names):
            self._names = tuple(names)
            self._node.outputs.publish(label_message(names, self._node.get_clock().now().nanoseconds))
        if scores.counted:
            self._node.reporting.warn_once(BY_APPEARANCE, BY_APPEARANCE)

    def _state(self, fused: FusedFrame, names: Sequence[str], named: bool) -> None:
        """What a planner may rely on, each only while somebody listens."""
        # sets and bounds are calibrated for one fuser
        own = self._node.parameters.of(FusionSettings).fuser in ("", self._default)
        coverage = self._node.parameters.of(StatementSettings).coverage
        reliance = self._reliance if own else None
        statements = Statements(names, reliance, self._costs, coverage, named)
        for message in statements.messages(fused, self._node.outputs.wanted):
            self._node.outputs.publish(message)

    def clear(self, cleared: Sequence[str]) -> None:
        """Tracks were forgotten between frames; these were warned of."""
        if cleared:
            self._node.outputs.publish(cleared_message(cleared, self._node.get_clock().now().nanoseconds))
