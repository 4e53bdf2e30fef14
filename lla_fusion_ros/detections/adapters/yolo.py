"""yolo_msgs/DetectionArray of yolo_ros: `tracking` has the ids of one camera's tracker, `detections` none."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, bbox_of, header_of
from lla_fusion_ros.detections.frame import FrameDetections, given_ids

FIELDS = {
    "yolo_msgs/Point2D": "float64 x\nfloat64 y",
    "yolo_msgs/Pose2D": "yolo_msgs/Point2D position\nfloat64 theta",
    "yolo_msgs/Vector2": "float64 x\nfloat64 y",
    "yolo_msgs/BoundingBox2D": "yolo_msgs/Pose2D center\nyolo_msgs/Vector2 size",
    "yolo_msgs/BoundingBox3D": "geometry_msgs/Pose center\ngeometry_msgs/Vector3 size\nstring frame_id",
    "yolo_msgs/Mask": "int32 height\nint32 width\nyolo_msgs/Point2D[] data",
    "yolo_msgs/KeyPoint2D": "int32 id\nyolo_msgs/Point2D point\nfloat64 score",
    "yolo_msgs/KeyPoint2DArray": "yolo_msgs/KeyPoint2D[] data",
    "yolo_msgs/KeyPoint3D": "int32 id\ngeometry_msgs/Point point\nfloat64 score",
    "yolo_msgs/KeyPoint3DArray": "yolo_msgs/KeyPoint3D[] data\nstring frame_id",
    "yolo_msgs/Detection": (
        "int32 class_id\nstring class_name\nfloat64 score\nstring id\nyolo_msgs/BoundingBox2D bbox\n"
        "yolo_msgs/BoundingBox3D bbox3d\nyolo_msgs/Mask mask\nyolo_msgs/KeyPoint2DArray keypoints\n"
        "yolo_msgs/KeyPoint3DArray keypoints3d"
    ),
    "yolo_msgs/DetectionArray": "std_msgs/Header header\nyolo_msgs/Detection[] detections",
}
BOX = ("bbox.center.position.x", "bbox.center.position.y", "bbox.center.theta", "bbox.size.x", "bbox.size.y")


def convert(message: Message) -> FrameDetections:
    rows = message["detections"]
    ids, scope = given_ids(tuple(row["id"] for row in rows), "camera")
    return FrameDetections(
        header=header_of(message),
        bbox=bbox_of([row[field] for field in BOX] for row in rows),
        ids=ids,
        scores=tuple(((str(row["class_id"]), row["score"]),) for row in rows),
        id_scope=scope,
        class_names={str(row["class_id"]): row["class_name"] for row in rows},
    )


ADAPTER = Adapter(("yolo_msgs/DetectionArray",), (FIELDS,), convert)
