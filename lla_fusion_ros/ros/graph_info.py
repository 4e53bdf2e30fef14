"""What `lla-fusion info` finds on the running graph: cameras, and whether they can be fused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image

from lla_fusion_ros.bags.topics import CameraTopics, find_cameras
from lla_fusion_ros.bags.types import Summary, Topic
from lla_fusion_ros.detections import FrameDetections, adapter_for, known_types
from lla_fusion_ros.messages.cdr import CdrReader
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, IMAGE, image_topic
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.ros.wiring import detections_class
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally

SETTLED = 1.5  # seconds without a new topic after which all publishers of a graph are known
PATIENCE = 5.0  # seconds until another node is found; and then until the first messages come
MOST_FRAMES = 5000  # kept of a camera
_LIKE_DETECTIONS = re.compile(r"Detect|Object|BoundingBox|Track", re.IGNORECASE)
_OURS = ("/fused_classes", "/views", "/views/embeddings", "/annotated", "/class_sets", "/decisions")


@dataclass(frozen=True, slots=True)
class CameraFound:
    """A camera on the graph, and how its messages looked for a few seconds.

    Attributes:
        image_qos, detections_qos: "reliable" or "best effort".
        image_rate, detections_rate: messages per second.
        chosen: message type, where the ids come from and what they mean; empty where no box came.
        offset: seconds from the nearest image's stamp to that of the detections, in the middle.
        boxes: left, top, right and bottom end of all boxes, in pixels.
        missing: what keeps it from being fused, and the way out.
    """

    name: str
    image: str
    image_qos: str
    image_rate: float
    image_size: tuple[int, int] | None
    detections: str
    type: str
    detections_qos: str
    detections_rate: float
    objects: int
    chosen: str
    offset: float | None
    boxes: tuple[float, float, float, float] | None
    missing: tuple[str, ...]


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
        listeners = [_Listener(node, camera, topics) for camera in wiring.cameras]
        _spin(executor, PATIENCE, lambda: all(listener.complete for listener in listeners))
        _spin(executor, seconds)
        cameras = tuple(listener.found(seconds) for listener in listeners)
    finally:
        executor.shutdown()
        node.destroy_node()
        context.shutdown()
    usable = [camera for camera in cameras if not camera.missing]
    unclear = [text.replace("--camera NAME=IMAGE,DETECTIONS", _ARGUMENTS) for text in wiring.missing]
    return GraphDescription(
        seconds=seconds,
        cameras=cameras,
        can_be_fused=bool(usable),
        missing=(*_nothing(cameras, topics, unclear), *(text for each in cameras for text in each.missing)),
        notes=_notes(topics),
        command=_command(usable),
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
        return [text for text in unclear if "could belong to" in text]
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


def _command(cameras: Sequence[CameraFound]) -> str:
    if not cameras:
        return ""
    words = ["ros2 launch lla_fusion_ros fusion.launch.py model:=YOURS"]
    words.append(f"cameras:={','.join(camera.name for camera in cameras)}")
    images = [camera.image.removesuffix("/compressed") for camera in cameras]
    if images != [f"/{image_topic(camera.name)}" for camera in cameras]:
        words.append(f"image_topic:={','.join(images)}")
    boxes = [camera.detections for camera in cameras]
    if boxes != [f"/{camera.name}/detections" for camera in cameras]:
        words.append(f"detections_topic:={','.join(boxes)}")
    return " ".join(words)


@dataclass
class _Heard:
    """Messages of one topic: when they came, in seconds, and their stamps."""

    arrived: list[float] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)

    def add(self, stamp: int) -> None:
        if len(self.stamps) < MOST_FRAMES:
            self.arrived.append(time.monotonic())
            self.stamps.append(stamp)

    @property
    def rate(self) -> float:
        span = self.arrived[-1] - self.arrived[0] if self.arrived else 0.0
        return (len(self.arrived) - 1) / span if span else 0.0


class _Listener:
    """Hears one camera."""

    def __init__(self, node: Node, camera: CameraTopics, topics: dict[str, Topic]) -> None:
        self._camera = camera
        self._reliable = {name: topics[name].reliable for name in (camera.image, camera.detections)}
        self._images, self._boxes = _Heard(), _Heard()
        self._size: tuple[int, int] | None = None
        self._edges = np.empty((0, 4))
        self._objects = 0
        self._identity = Identity([camera.name], StreamSettings(), Tally())
        self._problem = ""
        # best effort hears every publisher, and asks none to send again
        qos = QoSProfile(depth=20, reliability=ReliabilityPolicy.BEST_EFFORT)
        kind = CompressedImage if camera.compressed else Image
        node.create_subscription(kind, camera.image, self._on_image, qos, raw=True)
        try:
            boxes = detections_class(camera.type)
            node.create_subscription(boxes, camera.detections, self._on_boxes, qos, raw=True)
        except InputError as error:
            self._problem = f"{camera.detections}: {error}"

    @property
    def complete(self) -> bool:
        """Whether something has come on both topics, or something is wrong."""
        return bool(self._problem or (self._images.stamps and self._boxes.stamps))

    def _on_image(self, raw: bytes) -> None:
        try:
            self._images.add(CdrReader(raw).header().stamp)
            if self._size is None:
                parse = parse_compressed_image if self._camera.compressed else parse_image
                height, width = parse(raw).pixels().shape[:2]
                self._size = width, height
        except InputError as error:
            self._problem = f"{self._camera.image}: {error}"

    def _on_boxes(self, raw: bytes) -> None:
        adapter = adapter_for(self._camera.type)
        assert adapter is not None
        try:
            found = adapter.read(raw)
        except InputError as error:
            self._problem = f"{self._camera.detections}: {error}"
            return
        assert isinstance(found, FrameDetections)
        self._boxes.add(found.header.stamp)
        self._objects += len(found)
        self._identity.name(self._camera.name, found.header.stamp, self._camera.type, found, self._size)
        half = found.boxes[:, 2:] / 2
        edges = np.concatenate([found.boxes[:, :2] - half, found.boxes[:, :2] + half], axis=1)
        self._edges = np.concatenate([self._edges, edges[np.isfinite(edges).all(axis=1)]])[-MOST_FRAMES:]

    def found(self, seconds: float) -> CameraFound:
        camera, edges = self._camera, self._edges
        offset, missing = self._stamps(seconds)
        chosen = self._identity.chosen.get(camera.name)
        trouble = self._identity.troubles().get(camera.name, "")
        qos = {name: "reliable" if reliable else "best effort" for name, reliable in self._reliable.items()}
        boxes = None
        if len(edges):
            (left, top), (right, bottom) = edges[:, :2].min(axis=0), edges[:, 2:].max(axis=0)
            boxes = float(left), float(top), float(right), float(bottom)
        return CameraFound(
            name=camera.name,
            image=camera.image,
            image_qos=qos[camera.image],
            image_rate=self._images.rate,
            image_size=self._size,
            detections=camera.detections,
            type=camera.type,
            detections_qos=qos[camera.detections],
            detections_rate=self._boxes.rate,
            objects=self._objects,
            chosen="" if chosen is None else str(chosen),
            offset=offset,
            boxes=boxes,
            missing=tuple(filter(None, (self._problem, *missing, trouble))),
        )

    def _stamps(self, seconds: float) -> tuple[float | None, list[str]]:
        """Offset between both streams, and what is wrong with it."""
        camera = self._camera
        if self._problem:
            return None, []
        topics = {camera.image: self._images, camera.detections: self._boxes}
        if silent := [name for name, heard in topics.items() if not heard.stamps]:
            return None, [f"{name}: nothing came in {seconds:g} s" for name in silent]
        images, boxes = np.array(self._images.stamps), np.array(self._boxes.stamps)
        away = (boxes[:, None] - images[None]) / 1e9
        nearest = away[np.arange(len(boxes)), np.abs(away).argmin(axis=1)]
        offset = float(np.median(nearest))
        tolerance = StreamSettings().sync_tolerance
        if np.mean(np.abs(nearest) <= tolerance) >= 0.5:
            return offset, []
        if np.mean(np.abs(nearest - offset) <= tolerance) >= 0.8:
            cure = f"set {camera.name}.time_offset: {-offset:.3f}"
        else:
            cure = "it changes, so the detector has to copy the image's stamp"
        return offset, [f"{camera.name}: stamps of detections are {offset:+.3f} s from the images'; {cure}"]
