"""`crop_classifier`: images and tracked boxes in, views out; runs on the camera's own computer if need be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lla_fusion_ros.ros.cv_bridge_fallback import cv_bridge_fallback
from lla_fusion_ros.ros.image_node import ImageNode
from lla_fusion_ros.stream.classify import ClassifyStage
from lla_fusion_ros.stream.outputs import annotated_views_message
from lla_fusion_ros.stream.queues import FrameQueue
from lla_fusion_ros.stream.settings import StreamSettings

MOST_FRAMES = 64  # of a batch


class CropClassifierNode(ImageNode):
    """Networks without fusion: publishes `<camera>/views` and `<camera>/views/embeddings`."""

    def __init__(self, **options: Any) -> None:
        self._classify: ClassifyStage | None = None
        super().__init__("crop_classifier", **options)

    def build(self) -> None:
        bundle, classifier = self.load()
        settings = self.parameters.of(StreamSettings)
        offsets = self.parameters.time_offsets
        self.queue = FrameQueue(self.parameters.cameras, settings, self.tally, offsets)
        self._classify = ClassifyStage(
            classifier,
            bundle.input_size,
            bundle.crop_margin,
            settings,
            self.tally,
            cv_bridge_fallback(),
            helper=classifier.device.type == "cpu",
        )
        self._class_names = bundle.class_names

    def free(self) -> None:
        self._classify = None
        super().free()

    def work(self) -> bool:
        if self.queue is None or self._classify is None:
            return False
        begun = time.monotonic()
        waiting = self.queue.ready.take(MOST_FRAMES)
        frames = self.guard.batch(self._classify, waiting)
        for frame in frames:
            self.publish_views(frame)
            if self.wants_annotated(frame.camera):
                self.outputs.publish(annotated_views_message(frame, self._class_names))
        spent = time.monotonic() - begun
        for frame in frames:
            self.finish(frame.header.stamp, spent / len(frames))
        return bool(waiting)

    def prepare(self, settings: Sequence[Any]) -> Callable[[], None]:
        queue, classify = self.queue, self._classify
        assert queue is not None and classify is not None

        def take_over() -> None:
            for changed in settings:
                if isinstance(changed, StreamSettings):
                    queue.configure(changed)
                    classify.settings = changed

        return take_over

    def reset(self) -> None:
        assert self.queue is not None
        self.queue.clear()
