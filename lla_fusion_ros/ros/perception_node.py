"""`perception`: images and tracked boxes in, fused classes and warnings out, in one process."""

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
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.outputs import (
    annotated_message,
    bundle_message,
    fused_messages,
    label_message,
    view_messages,
)
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.settings import StreamSettings
from lla_fusion_ros.wire import contract


class PerceptionNode(ManagedNode):
    """Networks and fusion in one process; views are handed over in memory, and published on demand."""

    def __init__(self, **options: Any) -> None:
        self._perception: Perception | None = None
        self._camera_inputs: CameraInputs | None = None
        super().__init__("perception", **options)

    def build(self) -> None:
        own, networks = self.parameters.of(NodeSettings), self.parameters.of(NetworkSettings)
        bundle = load_model(own.model, self.get_logger())
        classifier = make_classifier(bundle, networks, self.get_logger())
        self._perception = Perception(
            bundle,
            classifier,
            self.parameters.cameras,
            self.parameters.of(StreamSettings),
            self.parameters.of(FusionSettings),
            self.parameters.time_offsets,
            cv_bridge_fallback(),
            self.tally,
        )
        self._class_names = bundle.class_names
        self._about = {"device": str(classifier.device), "model": own.model, "model hash": bundle.hash}
        stamp = self.get_clock().now().nanoseconds
        self.outputs.latch(label_message(bundle.class_names, stamp))
        self.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)
        self.outputs.advertise(contract.OOD_WARNINGS, contract.DIAGNOSTICS)
        for camera in self.parameters.cameras:
            self.outputs.latch(bundle_message(camera, bundle, stamp))
            self.outputs.advertise(contract.views_topic(camera), contract.DETECTIONS)
            self.outputs.advertise(contract.embeddings_topic(camera), contract.IMAGE)
            self.outputs.advertise(contract.annotated_topic(camera), contract.IMAGE)

    def free(self) -> None:
        self._perception = None
        free_device()

    def subscribe(self, inputs: Inputs) -> None:
        assert self._perception is not None
        transport = self.parameters.of(NetworkSettings).image_transport
        self._camera_inputs = CameraInputs(
            self, inputs, self._perception.queue, self.parameters.cameras, transport
        )

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        super().look(inputs, silent)
        if self._camera_inputs is not None:
            self._camera_inputs.listen_again(silent)

    def work(self) -> bool:
        if self._perception is None:
            return False
        begun = time.monotonic()
        waiting = len(self._perception.queue.ready)
        frames = self._perception.step()
        for fused in frames:
            self._publish(fused)
        spent = time.monotonic() - begun
        for fused in frames:
            self.finish(fused.frame.header.stamp, spent / len(frames))
        return waiting > 0

    def apply(self, settings: Sequence[Any]) -> None:
        assert self._perception is not None
        for changed in settings:
            if isinstance(changed, FusionSettings):
                self._perception.fuse.engine.configure(changed)
            elif isinstance(changed, StreamSettings):
                self._perception.configure(changed)

    def reset(self) -> None:
        assert self._perception is not None
        self._perception.queue.clear()
        self._perception.fuse.engine.reset()

    def describe(self) -> dict[str, str]:
        if self._perception is None:
            return {}
        engine = self._perception.fuse.engine
        return {
            **self._about,
            "fuser": engine.fuser.name,
            "tracks": str(engine.tracks),
            "waiting frames": str(len(self._perception.queue.ready)),
        }

    def _publish(self, fused: FusedFrame) -> None:
        camera, limit = fused.frame.camera, self.parameters.of(NodeSettings).max_hypotheses
        for message in fused_messages(fused, self._class_names, limit):
            self.outputs.publish(message)
        if self.outputs.wanted(contract.embeddings_topic(camera)) or self.outputs.wanted(
            contract.views_topic(camera)
        ):
            for message in view_messages(fused.frame, limit):
                self.outputs.publish(message)
        if self.outputs.wanted(contract.annotated_topic(camera)):
            self.outputs.publish(annotated_message(fused, self._class_names))
        if fused.result.jumped:
            self.get_logger().warning(f"camera {camera}: the clock jumped back, all tracks were cleared")
        for note in fused.result.notes:
            self.tell_once(note, note)


def main(args: list[str] | None = None) -> None:
    run(PerceptionNode, args)


if __name__ == "__main__":
    main()
