"""ultralytics_ros/YoloResult: a Detection2DArray, whose own header stays empty, and masks; no ids."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, header_of
from lla_fusion_ros.detections.adapters import vision_detection_2d
from lla_fusion_ros.detections.frame import FrameDetections

FIELDS = {
    "ultralytics_ros/YoloResult": (
        "std_msgs/Header header\nvision_msgs/Detection2DArray detections\nsensor_msgs/Image[] masks"
    ),
}


def convert(message: Message) -> FrameDetections:
    return vision_detection_2d.convert(message, header_of(message), "detections.detections")


ADAPTER = Adapter(("ultralytics_ros/YoloResult",), (FIELDS,), convert)
