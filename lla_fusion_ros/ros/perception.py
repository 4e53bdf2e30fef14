"""`perception`: images and tracked boxes in, fused classes and warnings out, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lla_fusion_ros.ros.cv_bridge_fallback import cv_bridge_fallback
from lla_fusion_ros.ros.fused_output import FusedOutput, describe_engine
from lla_fusion_ros.ros.image_node import ImageNode
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.outputs import annotated_message
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.settings import StreamSettings


class PerceptionNode(ImageNode):
    """Networks and fusion in one process; views are handed over in memory, and published on demand."""

    def __init__(self, **options: Any) -> None:
        self._perception: Perception | None = None
        super().__init__("perception", **options)

    def build(self) -> None:
        bundle, classifier = self.load()
        self._perception = Perception(
            bundle,
            classifier,
            self.parameters.cameras,
            self.parameters.of(StreamSettings),
            self.parameters.of(FusionSettings),
            self.parameters.time_offsets,
            cv_bridge_fallback(),
            self.tally,
            self.on_frame_error,
        )
        self.queue = self._perception.queue
        self._fused = FusedOutput(self, bundle)

    def free(self) -> None:
        self._perception = None
        super().free()

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

    def prepare(self, settings: Sequence[Any]) -> Callable[[], None]:
        perception = self._perception
        assert perception is not None
        engine = perception.fuse.engine
        changes = [engine.prepare(changed) for changed in settings if isinstance(changed, FusionSettings)]

        def take_over() -> None:
            for change in changes:
                self._fused.clear(engine.take(change))
            for changed in settings:
                if isinstance(changed, StreamSettings):
                    perception.configure(changed)

        return take_over

    def reset(self) -> None:
        assert self._perception is not None
        self._perception.queue.clear()
        self._fused.clear(self._perception.fuse.engine.reset())

    def describe(self) -> dict[str, str]:
        engine = {} if self._perception is None else describe_engine(self._perception.fuse.engine)
        return {**super().describe(), **engine}

    def _publish(self, fused: FusedFrame) -> None:
        camera = fused.frame.camera
        self._fused.publish(fused)
        if self.wants_views(camera):
            self.publish_views(fused.frame)
        if self.wants_annotated(camera):
            self.outputs.publish(annotated_message(fused, self._fused.class_names))
