"""depthai_ros_msgs/SpatialDetectionArray: boxes with a distance; the driver leaves the ids empty."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, header_of, vision_boxes
from lla_fusion_ros.detections.frame import FrameDetections

FIELDS = {
    "depthai_ros_msgs/SpatialDetection": (
        "vision_msgs/ObjectHypothesis[] results\nvision_msgs/BoundingBox2D bbox\n"
        "geometry_msgs/Point position\nbool is_tracking\nstring tracking_id"
    ),
    "depthai_ros_msgs/SpatialDetectionArray": (
        "std_msgs/Header header\ndepthai_ros_msgs/SpatialDetection[] detections"
    ),
}


def convert(message: Message) -> FrameDetections:
    rows = message["detections"]
    ids = (row["tracking_id"] if row["is_tracking"] else "" for row in rows)
    return vision_boxes(header_of(message), rows, ids, prefix="")


ADAPTER = Adapter(("depthai_ros_msgs/SpatialDetectionArray",), (FIELDS,), convert)
