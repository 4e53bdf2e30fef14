"""`crop_classifier`: images and tracked boxes in, views out; runs on the camera's own computer if need be."""

from __future__ import annotations

from typing import Any

from lla_fusion_ros.ros.image_node import ImageNode
from lla_fusion_ros.stream.frame_messages import annotated_views_message
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.types.errors import InputError


class CropClassifierNode(ImageNode):
    """Networks without fusion: publishes `<camera>/views` and `<camera>/views/embeddings`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("crop_classifier", **options)

    def build(self) -> Perception:
        bundle = self.load_bundle()
        if bundle.for_scores:
            raise InputError(f"model '{bundle.source}' has no networks: scores are fused by `perception`")
        self._class_names = bundle.class_names
        return self.make_perception(bundle, None)

    def step(self, perception: Perception) -> list[ViewFrame]:
        return perception.views()

    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        assert isinstance(frame, ViewFrame)
        self.publish_views(frame)
        if frame.pixels is not None and self.wants_annotated(frame.camera):
            self.outputs.publish(annotated_views_message(frame, self._class_names))
