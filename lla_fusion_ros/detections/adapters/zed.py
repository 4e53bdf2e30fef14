"""zed_msgs/ObjectsStamped of the ZED wrapper (zed_interfaces before 2024): boxes in the left image.

`label_id` is the id of the object, not of its class: the wrapper puts its tracker's number there, -1 without
one. Confidence is 1 to 99.
"""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, bbox_of, header_of
from lla_fusion_ros.detections.frame import FrameDetections, given_ids


def fields(keypoints: int) -> dict[str, str]:
    """The definitions with skeletons of so many keypoints."""
    return {
        "zed_msgs/Keypoint2Df": "float32[2] kp",
        "zed_msgs/Keypoint2Di": "uint32[2] kp",
        "zed_msgs/Keypoint3D": "float32[3] kp",
        "zed_msgs/BoundingBox2Df": "zed_msgs/Keypoint2Df[4] corners",
        "zed_msgs/BoundingBox2Di": "zed_msgs/Keypoint2Di[4] corners",
        "zed_msgs/BoundingBox3D": "zed_msgs/Keypoint3D[8] corners",
        "zed_msgs/Skeleton2D": f"zed_msgs/Keypoint2Df[{keypoints}] keypoints",
        "zed_msgs/Skeleton3D": f"zed_msgs/Keypoint3D[{keypoints}] keypoints",
        "zed_msgs/Object": (
            "string label\nint16 label_id\nstring sublabel\nfloat32 confidence\nfloat32[3] position\n"
            "float32[6] position_covariance\nfloat32[3] velocity\nbool tracking_available\n"
            "int8 tracking_state\nint8 action_state\nzed_msgs/BoundingBox2Di bounding_box_2d\n"
            "zed_msgs/BoundingBox3D bounding_box_3d\nfloat32[3] dimensions_3d\nbool skeleton_available\n"
            "int8 body_format\nzed_msgs/BoundingBox2Df head_bounding_box_2d\n"
            "zed_msgs/BoundingBox3D head_bounding_box_3d\nfloat32[3] head_position\n"
            "zed_msgs/Skeleton2D skeleton_2d\nzed_msgs/Skeleton3D skeleton_3d"
        ),
        "zed_msgs/ObjectsStamped": "std_msgs/Header header\nzed_msgs/Object[] objects",
    }


def convert(message: Message) -> FrameDetections:
    rows = message["objects"]
    tracked = [row["tracking_available"] and row["label_id"] >= 0 for row in rows]
    ids, scope = given_ids(
        tuple(str(row["label_id"]) if own else "" for row, own in zip(rows, tracked, strict=True)), "camera"
    )
    return FrameDetections(
        header=header_of(message),
        bbox=bbox_of(_upright(row["bounding_box_2d.corners"]) for row in rows),
        ids=ids,
        scores=tuple(((row["label"] or row["sublabel"], row["confidence"] / 100),) for row in rows),
        id_scope=scope,
    )


def _upright(corners: tuple[int, ...]) -> tuple[float, ...]:
    """Centre and size of four corners x, y, x, y, ..."""
    left, right, top, bottom = min(corners[::2]), max(corners[::2]), min(corners[1::2]), max(corners[1::2])
    return (left + right) / 2, (top + bottom) / 2, 0.0, right - left, bottom - top


ADAPTER = Adapter(
    ("zed_msgs/ObjectsStamped", "zed_interfaces/ObjectsStamped"), (fields(70), fields(34)), convert
)
