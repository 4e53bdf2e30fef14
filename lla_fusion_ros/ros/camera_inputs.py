"""Images and detections of all cameras, from bytes into the queue of frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sensor_msgs.msg import CompressedImage, Image
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.messages.contract import compressed_topic, detections_topic, image_topic
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.stream.queues import FrameQueue
from lla_fusion_ros.types.errors import InputError


class CameraInputs:
    """Feeds a FrameQueue. With transport `auto` both image topics are heard until one of them speaks."""

    def __init__(
        self, node: ManagedNode, inputs: Inputs, queue: FrameQueue, cameras: Sequence[str], transport: str
    ) -> None:
        self._node = node
        self._inputs = inputs
        self._queue = queue
        self._transport = transport
        self._chosen: dict[str, str] = {}
        for camera in cameras:
            self._subscribe_images(camera)
            on_detections = partial(self._on_detections, camera)
            on_lost = partial(self._lost, camera, "detections_lost")
            inputs.subscribe(Detection2DArray, detections_topic(camera), on_detections, on_lost)

    def listen_again(self, silent: frozenset[str]) -> None:
        """A camera whose publisher is gone may come back by the other transport."""
        for camera in silent & self._chosen.keys():
            if not self._inputs.has_publisher(self._chosen[camera]):
                del self._chosen[camera]
                self._subscribe_images(camera)

    def _subscribe_images(self, camera: str) -> None:
        on_lost = partial(self._lost, camera, "images_lost")
        if self._transport in ("auto", "raw"):
            self._inputs.subscribe(Image, image_topic(camera), partial(self._on_image, camera), on_lost)
        if self._transport in ("auto", "compressed"):
            on_compressed = partial(self._on_compressed, camera)
            self._inputs.subscribe(CompressedImage, compressed_topic(camera), on_compressed, on_lost)

    def _lost(self, camera: str, reason: str, count: int) -> None:
        self._node.tally.drop(camera, {reason: count})

    def _on_image(self, camera: str, raw: bytes, received: int) -> None:
        self._choose(camera, image_topic(camera), compressed_topic(camera))
        self._node.hear(camera)
        try:
            ready = self._queue.offer_image(camera, parse_image(raw), received=received)
        except InputError:
            self._node.tally.drop(camera, {"bad_message": 1})
            return
        if ready:
            self._node.wake()

    def _on_compressed(self, camera: str, raw: bytes, received: int) -> None:
        self._choose(camera, compressed_topic(camera), image_topic(camera))
        self._node.hear(camera)
        try:
            ready = self._queue.offer_image(camera, parse_compressed_image(raw), received=received)
        except InputError:
            self._node.tally.drop(camera, {"bad_message": 1})
            return
        if ready:
            self._node.wake()

    def _on_detections(self, camera: str, raw: bytes, received: int) -> None:
        try:
            ready = self._queue.offer_detections(camera, parse_detections(raw), received=received)
        except InputError:
            self._node.tally.drop(camera, {"bad_message": 1})
            return
        if ready:
            self._node.wake()

    def _choose(self, camera: str, topic: str, other: str) -> None:
        if self._transport == "auto" and self._chosen.get(camera) != topic:
            self._chosen[camera] = topic
            self._inputs.unsubscribe(other)
