"""tier4_perception_msgs/DetectedObjectsWithFeature of Autoware's image detectors: rectangles without ids.

The detector's confidence is `existence_probability`; `classification` names the class with probability 1.
Older Autoware takes the object from autoware_auto_perception_msgs, which lies in the bytes just the same.
"""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, bbox_of, header_of
from lla_fusion_ros.detections.frame import FrameDetections

FIELDS = {
    "autoware_perception_msgs/ObjectClassification": "uint8 label\nfloat32 probability",
    "autoware_perception_msgs/DetectedObjectKinematics": (
        "geometry_msgs/PoseWithCovariance pose_with_covariance\nbool has_position_covariance\n"
        "uint8 orientation_availability\ngeometry_msgs/TwistWithCovariance twist_with_covariance\n"
        "bool has_twist\nbool has_twist_covariance"
    ),
    "autoware_perception_msgs/Shape": (
        "uint8 type\ngeometry_msgs/Polygon footprint\ngeometry_msgs/Vector3 dimensions"
    ),
    "autoware_perception_msgs/DetectedObject": (
        "float32 existence_probability\nautoware_perception_msgs/ObjectClassification[] classification\n"
        "autoware_perception_msgs/DetectedObjectKinematics kinematics\nautoware_perception_msgs/Shape shape"
    ),
    "tier4_perception_msgs/Feature": "sensor_msgs/PointCloud2 cluster\nsensor_msgs/RegionOfInterest roi",
    "tier4_perception_msgs/DetectedObjectWithFeature": (
        "autoware_perception_msgs/DetectedObject object\ntier4_perception_msgs/Feature feature"
    ),
    "tier4_perception_msgs/DetectedObjectsWithFeature": (
        "std_msgs/Header header\ntier4_perception_msgs/DetectedObjectWithFeature[] feature_objects"
    ),
}
LABELS = (
    "unknown", "car", "truck", "bus", "trailer", "motorcycle", "bicycle", "pedestrian", "animal", "hazard",
    "over drivable", "under drivable",
)  # fmt: skip


def roi_row(row: Message, prefix: str) -> tuple[float, ...]:
    """A RegionOfInterest, which has its upper left corner, as centre and size."""
    x, y, width, height = (row[prefix + name] for name in ("x_offset", "y_offset", "width", "height"))
    return x + width / 2, y + height / 2, 0.0, width, height


def convert(message: Message) -> FrameDetections:
    rows = message["feature_objects"]
    return FrameDetections(
        header=header_of(message),
        bbox=bbox_of(roi_row(row, "feature.roi.") for row in rows),
        ids=None,
        scores=tuple(
            tuple(
                (str(guess["label"]), row["object.existence_probability"] * guess["probability"])
                for guess in row["object.classification"]
            )
            for row in rows
        ),
        id_scope="none",
        class_names={str(number): name for number, name in enumerate(LABELS)},
    )


ADAPTER = Adapter(("tier4_perception_msgs/DetectedObjectsWithFeature",), (FIELDS,), convert)
