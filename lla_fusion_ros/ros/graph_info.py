"""What `lla-fusion info` finds on the running graph: cameras, and whether they can be fused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy

from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bags.types import Summary, Topic
from lla_fusion_ros.detections import adapter_for, known_types
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, IMAGE, image_topic
from lla_fusion_ros.ros.graph_listener import CameraFound, CameraListener

SETTLED = 1.5  # seconds without a new topic after which all publishers of a graph are known
PATIENCE = 5.0  # seconds until another node is found; and then until the first messages come
_LIKE_DETECTIONS = re.compile(r"Detect|Object|BoundingBox|Track", re.IGNORECASE)
_OURS = ("/fused_classes", "/views", "/views/embeddings", "/annotated", "/class_sets", "/decisions")


@dataclass(frozen=True, slots=True)
class GraphDescription:
    """Attributes:
    missing: what keeps the graph, or a part of it, from being fused.
    command: launches the fusion of the cameras that can be fused; empty where there is none.
    """

    seconds: float
    cameras: tuple[CameraFound, ...]
    can_be_fused: bool
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    command: str

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def describe_graph(seconds: float = 5.0) -> GraphDescription:
    """Look at the graph of this domain for that long."""
    context = Context()
    context.init(args=[])
    node = Node("lla_fusion_info", context=context, enable_rosout=False, start_parameter_services=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        topics = _discover(executor, node)
        wiring = find_cameras(Summary(tuple(topics.values()), 0, 0))
        listeners = [CameraListener(node, camera, topics) for camera in wiring.cameras]
        _spin(executor, PATIENCE, lambda: all(listener.complete for listener in listeners))
        _spin(executor, seconds)
        cameras = tuple(listener.found(seconds) for listener in listeners)
    finally:
        executor.shutdown()
        node.destroy_node()
        context.shutdown()
    usable = [camera for camera in cameras if not camera.missing]
    unclear = [text.replace("--camera NAME=IMAGE,DETECTIONS", _ARGUMENTS) for text in wiring.missing]
    unclear = [text.replace("--set objects_topic=", "objects_topic:=") for text in unclear]
    return GraphDescription(
        seconds=seconds,
        cameras=cameras,
        can_be_fused=bool(usable),
        missing=(*_nothing(cameras, topics, unclear), *(text for each in cameras for text in each.missing)),
        notes=_notes(topics),
        command=_command(usable, wiring.objects),
    )


_ARGUMENTS = "the launch arguments cameras, image_topic and detections_topic"


def _spin(executor: SingleThreadedExecutor, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not done():
        executor.spin_once(timeout_sec=left)


def _discover(executor: SingleThreadedExecutor, node: Node) -> dict[str, Topic]:
    """All topics, once no new one is found any more."""
    topics: dict[str, Topic] = {}
    began = changed = time.monotonic()
    while (now := time.monotonic()) - began < 2 * PATIENCE:
        found = _topics(node)
        if found.keys() != topics.keys():
            changed = now
        topics = found
        others = len(node.get_node_names()) > 1
        if now - changed >= SETTLED and (others or now - began >= PATIENCE):
            break
        _spin(executor, 0.25)
    return topics


def _topics(node: Node) -> dict[str, Topic]:
    """What is published, by name; of a topic with several types one that can be read."""
    found: dict[str, Topic] = {}
    for name, _ in node.get_topic_names_and_types():
        if name.endswith(_OURS):
            continue
        for info in node.get_publishers_info_by_topic(name):
            reliable = info.qos_profile.reliability == ReliabilityPolicy.RELIABLE
            if name not in found or adapter_for(info.topic_type) is not None:
                found[name] = Topic(name, info.topic_type, 1, reliable=reliable)
    return found


def _nothing(cameras: Sequence[CameraFound], topics: dict[str, Topic], unclear: list[str]) -> list[str]:
    """Why there is no camera."""
    if cameras:
        return [text for text in unclear if "could belong to" in text or "objects_topic" in text]
    reasons = []
    if not any(topic.type in (IMAGE, COMPRESSED_IMAGE) for topic in topics.values()):
        reasons.append("nobody publishes images (sensor_msgs/Image or CompressedImage)")
    if not any(adapter_for(topic.type) for topic in topics.values()):
        reasons.append(
            "nobody publishes detections: start a detector that sends one of "
            + ", ".join(sorted(known_types()))
        )
    return reasons or unclear


def _notes(topics: dict[str, Topic]) -> tuple[str, ...]:
    return tuple(
        f"{topic.name} is {topic.type}, which cannot be read as detections"
        for topic in topics.values()
        if _LIKE_DETECTIONS.search(topic.type.rpartition("/")[2]) and adapter_for(topic.type) is None
    )


def _command(cameras: Sequence[CameraFound], objects: str) -> str:
    if not cameras:
        return ""
    words = ["ros2 launch lla_fusion_ros fusion.launch.py model:=YOURS"]
    words.append(f"cameras:={','.join(camera.name for camera in cameras)}")
    images = [
        camera.image.removesuffix("/compressed") if camera.detections else f"/{image_topic(camera.name)}"
        for camera in cameras
    ]
    if images != [f"/{image_topic(camera.name)}" for camera in cameras]:
        words.append(f"image_topic:={','.join(images)}")
    boxes = [camera.detections or f"/{camera.name}/detections" for camera in cameras]
    if boxes != [f"/{camera.name}/detections" for camera in cameras]:
        words.append(f"detections_topic:={','.join(boxes)}")
    if objects:
        words.append(f"objects_topic:={objects}")
    return " ".join(words)
