"""tier4_perception_msgs/TrafficLightRoiArray: the traffic lights of the map, under the map's ids.

Every camera sees the same map, so an id is one light for all of them. A light that is expected but not found
comes as an empty rectangle, which the box checks leave out.
"""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, bbox_of, header_of
from lla_fusion_ros.detections.adapters.autoware_objects import roi_row
from lla_fusion_ros.detections.frame import FrameDetections

ARRAY = {
    "tier4_perception_msgs/TrafficLightRoiArray": (
        "std_msgs/Header header\ntier4_perception_msgs/TrafficLightRoi[] rois"
    )
}
BEFORE_2024 = "sensor_msgs/RegionOfInterest roi\nint64 traffic_light_id"
TODAY = BEFORE_2024 + "\nuint8 traffic_light_type"  # for cars or for pedestrians


def convert(message: Message) -> FrameDetections:
    rows = message["rois"]
    return FrameDetections(
        header=header_of(message),
        bbox=bbox_of(roi_row(row, "roi.") for row in rows),
        ids=tuple(str(row["traffic_light_id"]) for row in rows),
        scores=None,
        id_scope="global",
    )


ADAPTER = Adapter(
    ("tier4_perception_msgs/TrafficLightRoiArray",),
    tuple({**ARRAY, "tier4_perception_msgs/TrafficLightRoi": light} for light in (TODAY, BEFORE_2024)),
    convert,
)
