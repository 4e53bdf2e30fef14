"""`class_fusion`: views of all cameras in, fused classes and warnings out; needs no GPU and no images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sensor_msgs.msg import Image
from vision_msgs.msg import Detection2DArray, VisionInfo

from lla_fusion_ros.engine import FusionEngine
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.ros.fused_output import FusedOutput, describe_engine
from lla_fusion_ros.ros.inputs import Inputs
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.model import load_model
from lla_fusion_ros.ros.settings import NodeSettings
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.stream.fuse import FuseStage
from lla_fusion_ros.stream.received import ViewQueue, ViewShape
from lla_fusion_ros.stream.settings import StreamSettings
from lla_fusion_ros.wire import contract
from lla_fusion_ros.wire.detections import parse_detections
from lla_fusion_ros.wire.images import parse_image
from lla_fusion_ros.wire.status import parse_vision_info

MOST_FRAMES = 64  # of a batch


class ClassFusionNode(ManagedNode):
    """Fusion without networks: takes `<camera>/views` and `<camera>/views/embeddings` of its own bundle."""

    def __init__(self, **options: Any) -> None:
        self._fuse: FuseStage | None = None
        self._queue: ViewQueue | None = None
        super().__init__("class_fusion", **options)

    def build(self) -> None:
        own = self.parameters.of(NodeSettings)
        bundle = load_model(own.model, self.get_logger())
        self._fuse = FuseStage(FusionEngine(bundle, self.parameters.of(FusionSettings)), self.tally)
        shape = ViewShape(bundle.networks, bundle.classes, bundle.posterior().features)
        self._queue = ViewQueue(
            self.parameters.cameras, shape, bundle.hash, self.parameters.of(StreamSettings), self.tally
        )
        self.about = {"model": own.model, "model hash": bundle.hash}
        self._fused = FusedOutput(self, bundle)

    def free(self) -> None:
        self._fuse = self._queue = None

    def subscribe(self, inputs: Inputs) -> None:
        for camera in self.parameters.cameras:
            inputs.subscribe_latched(
                VisionInfo, contract.views_info_topic(camera), partial(self._on_info, camera)
            )
            for message_type, topic, on_bytes, reason in (
                (Detection2DArray, contract.views_topic(camera), self._on_views, "views_lost"),
                (Image, contract.embeddings_topic(camera), self._on_embeddings, "embeddings_lost"),
            ):
                on_lost = partial(self._on_lost, camera, reason)
                inputs.subscribe(message_type, topic, partial(on_bytes, camera), on_lost)

    def work(self) -> bool:
        if self._queue is None or self._fuse is None:
            return False
        waiting = self._queue.ready.take(MOST_FRAMES)
        for frame in waiting:
            begun = time.monotonic()
            for fused in self.guard.one_by_one(self._fuse, [frame]):
                self._fused.publish(fused)
            self.finish(frame.header.stamp, time.monotonic() - begun)
        return bool(waiting)

    def prepare(self, settings: Sequence[Any]) -> Callable[[], None]:
        queue, fuse = self._queue, self._fuse
        assert queue is not None and fuse is not None
        changes = [
            fuse.engine.prepare(changed) for changed in settings if isinstance(changed, FusionSettings)
        ]

        def take_over() -> None:
            for change in changes:
                self._fused.clear(fuse.engine.take(change))
            for changed in settings:
                if isinstance(changed, StreamSettings):
                    queue.configure(changed)

        return take_over

    def reset(self) -> None:
        assert self._queue is not None and self._fuse is not None
        self._queue.clear()
        self._fused.clear(self._fuse.engine.reset())

    def describe(self) -> dict[str, str]:
        if self._queue is None or self._fuse is None:
            return {}
        waiting = str(len(self._queue.ready))
        return {**self.about, **describe_engine(self._fuse.engine), "waiting frames": waiting}

    def waiting(self, camera: str) -> dict[str, int]:
        return {} if self._queue is None else self._queue.waiting(camera)

    def troubles(self) -> dict[str, str]:
        if self._queue is None:
            return {}
        return {
            camera: f"its views come from bundle {theirs[:12]}, not from this node's; they are refused"
            for camera, theirs in self._queue.foreign.items()
        }

    def _on_lost(self, camera: str, reason: str, count: int) -> None:
        self.tally.drop(camera, {reason: count})

    def _on_info(self, camera: str, raw: bytes) -> None:
        try:
            _, _, location, _ = parse_vision_info(raw)
        except InputError:
            self.tally.drop(camera, {"bad_message": 1})
            return
        if self._queue is None:
            return
        if self._queue.offer_bundle(camera, location):
            self.wake()
        if camera in self._queue.foreign:
            self.get_logger().error(f"camera {camera}: {self.troubles()[camera]}")

    def _on_views(self, camera: str, raw: bytes) -> None:
        self.hear(camera)
        try:
            ready = self._queue is not None and self._queue.offer_views(camera, parse_detections(raw))
        except InputError:
            self.tally.drop(camera, {"bad_message": 1})
            return
        if ready:
            self.wake()

    def _on_embeddings(self, camera: str, raw: bytes) -> None:
        try:
            ready = self._queue is not None and self._queue.offer_embeddings(camera, parse_image(raw))
        except InputError:
            self.tally.drop(camera, {"bad_message": 1})
            return
        if ready:
            self.wake()
