"""depthai_ros_msgs/TrackDetection2DArray: ids of the tracker on the camera itself.

The score is the driver's threshold, the same for every box, so it says nothing; it is passed on as it is.
"""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, header_of, vision_boxes
from lla_fusion_ros.detections.frame import FrameDetections

FIELDS = {
    "depthai_ros_msgs/TrackDetection2D": (
        "vision_msgs/ObjectHypothesisWithPose[] results\nvision_msgs/BoundingBox2D bbox\nbool is_tracking\n"
        "string tracking_id\nint32 tracking_age\nint32 tracking_status"
    ),
    "depthai_ros_msgs/TrackDetection2DArray": (
        "std_msgs/Header header\ndepthai_ros_msgs/TrackDetection2D[] detections"
    ),
}


def convert(message: Message) -> FrameDetections:
    rows = message["detections"]
    ids = (row["tracking_id"] if row["is_tracking"] else "" for row in rows)
    return vision_boxes(header_of(message), rows, ids)


ADAPTER = Adapter(("depthai_ros_msgs/TrackDetection2DArray",), (FIELDS,), convert)
