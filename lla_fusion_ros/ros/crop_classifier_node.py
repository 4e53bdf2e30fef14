"""`crop_classifier`: images and tracked boxes in, views out; runs on the camera's own computer if need be."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from lla_fusion_ros.ros.camera_inputs import CameraInputs
from lla_fusion_ros.ros.cv_bridge_fallback import cv_bridge_fallback
from lla_fusion_ros.ros.device import free_device, make_classifier
from lla_fusion_ros.ros.inputs import Inputs
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.model import load_model
from lla_fusion_ros.ros.run import run
from lla_fusion_ros.ros.settings import NetworkSettings, NodeSettings
from lla_fusion_ros.stream.classify import ClassifyStage
from lla_fusion_ros.stream.outputs import annotated_views_message, bundle_message, view_messages
from lla_fusion_ros.stream.queues import FrameQueue
from lla_fusion_ros.stream.settings import StreamSettings
from lla_fusion_ros.wire import contract


class CropClassifierNode(ManagedNode):
    """Networks without fusion: publishes `<camera>/views` and `<camera>/views/embeddings`."""

    def __init__(self, **options: Any) -> None:
        self._classify: ClassifyStage | None = None
        self._queue: FrameQueue | None = None
        self._camera_inputs: CameraInputs | None = None
        super().__init__("crop_classifier", **options)

    def build(self) -> None:
        own, networks = self.parameters.of(NodeSettings), self.parameters.of(NetworkSettings)
        settings, cameras = self.parameters.of(StreamSettings), self.parameters.cameras
        bundle = load_model(own.model, self.get_logger())
        classifier = make_classifier(bundle, networks, self.get_logger())
        self._queue = FrameQueue(cameras, settings, self.tally, self.parameters.time_offsets)
        self._classify = ClassifyStage(
            classifier, bundle.input_size, bundle.crop_margin, settings, self.tally, cv_bridge_fallback()
        )
        self._class_names = bundle.class_names
        self._about = {"device": str(classifier.device), "model": own.model, "model hash": bundle.hash}
        stamp = self.get_clock().now().nanoseconds
        for camera in cameras:
            self.outputs.latch(bundle_message(camera, bundle, stamp))
            self.outputs.advertise(contract.views_topic(camera), contract.DETECTIONS)
            self.outputs.advertise(contract.embeddings_topic(camera), contract.IMAGE)
            self.outputs.advertise(contract.annotated_topic(camera), contract.IMAGE)

    def free(self) -> None:
        self._classify = self._queue = None
        free_device()

    def subscribe(self, inputs: Inputs) -> None:
        assert self._queue is not None
        transport = self.parameters.of(NetworkSettings).image_transport
        self._camera_inputs = CameraInputs(self, inputs, self._queue, self.parameters.cameras, transport)

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        super().look(inputs, silent)
        if self._camera_inputs is not None:
            self._camera_inputs.listen_again(silent)

    def work(self) -> bool:
        if self._queue is None or self._classify is None:
            return False
        begun = time.monotonic()
        waiting = self._queue.ready.take(64)
        frames = self._classify(waiting)
        limit = self.parameters.of(NodeSettings).max_hypotheses
        for frame in frames:
            for message in view_messages(frame, limit):
                self.outputs.publish(message)
            if self.outputs.wanted(contract.annotated_topic(frame.camera)):
                self.outputs.publish(annotated_views_message(frame, self._class_names))
        spent = time.monotonic() - begun
        for frame in frames:
            self.finish(frame.header.stamp, spent / len(frames))
        return bool(waiting)

    def apply(self, settings: Sequence[Any]) -> None:
        assert self._queue is not None and self._classify is not None
        for changed in settings:
            if isinstance(changed, StreamSettings):
                self._queue.configure(changed)
                self._classify.settings = changed

    def reset(self) -> None:
        assert self._queue is not None
        self._queue.clear()

    def describe(self) -> dict[str, str]:
        if self._queue is None:
            return {}
        return {**self._about, "waiting frames": str(len(self._queue.ready))}


def main(args: list[str] | None = None) -> None:
    run(CropClassifierNode, args)


if __name__ == "__main__":
    main()
