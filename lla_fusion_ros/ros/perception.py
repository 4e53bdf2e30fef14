"""`perception`: images and tracked boxes in, fused classes and warnings out, in one process."""

from __future__ import annotations

from typing import Any

from lla_fusion_ros.bundle.score_bundle import with_class_names
from lla_fusion_ros.ros.image_node import ImageNode
from lla_fusion_ros.ros.publishers import FusedOutput
from lla_fusion_ros.stream.frame_messages import annotated_message
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import FusionSettings

UNCALIBRATED = (
    "the detector's scores are fused as they come, uncalibrated; unknown objects are not told; "
    "`lla-fusion calibrate BAG --truth FILE` makes a calibrated model of a recording"
)


class PerceptionNode(ImageNode):
    """Networks and fusion in one process; views are handed over in memory, and published on demand."""

    def __init__(self, **options: Any) -> None:
        super().__init__("perception", **options)

    def build(self) -> Perception:
        names = self.parameters.of(StreamSettings).class_names
        bundle = with_class_names(self.load_bundle(), names)
        perception = self.make_perception(bundle, self.parameters.of(FusionSettings))
        if bundle.for_scores and not bundle.hash:
            self.get_logger().warning(UNCALIBRATED)
        self.fused_output = FusedOutput(self, bundle, perception.scores)
        return perception

    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        assert isinstance(frame, FusedFrame) and self.fused_output is not None
        self.fused_output.publish(frame)
        if self.wants_views(frame.camera):
            self.publish_views(frame.frame)
        if frame.frame.pixels is not None and self.wants_annotated(frame.camera):
            self.outputs.publish(annotated_message(frame, self.fused_output.class_names(frame)))
