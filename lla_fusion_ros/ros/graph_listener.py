"""Hears one camera on the graph: rates, stamps, ids, boxes, and what keeps it from being fused."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image

from lla_fusion_ros.bags.topics import CameraTopics
from lla_fusion_ros.bags.types import Topic
from lla_fusion_ros.detections import FrameDetections3D, adapter_for
from lla_fusion_ros.messages.cdr import CdrReader
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.ros.wiring import detections_class
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally

MOST_FRAMES = 5000  # kept of a camera
CROPS = "objects cut out, the track id in frame_id"


@dataclass(frozen=True, slots=True)
class CameraFound:
    """A camera on the graph, and how its messages looked for a few seconds.

    Attributes:
        image: of its images, or of objects cut out of them: then there are no detections.
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


class CameraListener:
    """Hears one camera."""

    def __init__(self, node: Node, camera: CameraTopics, topics: dict[str, Topic]) -> None:
        self._camera = camera
        names = filter(None, (camera.image, camera.detections))
        self._qos = {name: "reliable" if topics[name].reliable else "best effort" for name in names}
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
        if camera.crops:
            return
        try:
            boxes = detections_class(camera.type)
            node.create_subscription(boxes, camera.detections, self._on_boxes, qos, raw=True)
        except InputError as error:
            self._problem = f"{camera.detections}: {error}"

    @property
    def complete(self) -> bool:
        """Whether something has come on both topics, or something is wrong."""
        boxes = self._camera.crops or self._boxes.stamps
        return bool(self._problem or (self._images.stamps and boxes))

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
        if isinstance(found, FrameDetections3D):  # where they fall in the image is not looked at
            found = found.in_image(np.zeros((len(found), 5)), range(len(found)))
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
        boxes = None
        if len(edges):
            (left, top), (right, bottom) = edges[:, :2].min(axis=0), edges[:, 2:].max(axis=0)
            boxes = float(left), float(top), float(right), float(bottom)
        return CameraFound(
            name=camera.name,
            image=camera.image,
            image_qos=self._qos[camera.image],
            image_rate=self._images.rate,
            image_size=self._size,
            detections=camera.detections,
            type="" if camera.crops else camera.type,
            detections_qos=self._qos.get(camera.detections, ""),
            detections_rate=self._boxes.rate,
            objects=self._objects,
            chosen=CROPS if camera.crops else "" if chosen is None else str(chosen),
            offset=offset,
            boxes=boxes,
            missing=tuple(filter(None, (self._problem, *missing, trouble))),
        )

    def _stamps(self, seconds: float) -> tuple[float | None, list[str]]:
        """Offset between both streams, and what is wrong with it."""
        camera = self._camera
        if self._problem:
            return None, []
        topics = {camera.image: self._images}
        if not camera.crops:
            topics[camera.detections] = self._boxes
        if silent := [name for name, heard in topics.items() if not heard.stamps]:
            return None, [f"{name}: nothing came in {seconds:g} s" for name in silent]
        if camera.crops:
            return None, []
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
