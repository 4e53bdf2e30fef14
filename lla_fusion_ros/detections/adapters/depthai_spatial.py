"""depthai_ros_msgs/SpatialDetectionArray: boxes with a distance; the driver leaves the ids empty."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import (
    VISION_BOX,
    Adapter,
    Message,
    bbox_of,
    header_of,
    hypotheses_of,
)
from lla_fusion_ros.detections.frame import FrameDetections, given_ids

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
    ids, scope = given_ids(tuple(row["tracking_id"] if row["is_tracking"] else "" for row in rows), "camera")
    return FrameDetections(
        header=header_of(message),
        bbox=bbox_of([row[field] for field in VISION_BOX] for row in rows),
        ids=ids,
        scores=tuple(hypotheses_of(row["results"], prefix="") for row in rows),
        id_scope=scope,
    )


ADAPTER = Adapter(("depthai_ros_msgs/SpatialDetectionArray",), (FIELDS,), convert)
