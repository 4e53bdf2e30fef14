"""vision_msgs/Detection3DArray: boxes in space; an id is one object for every camera."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.detections.adapter import Adapter, Message, header_of, hypotheses_of
from lla_fusion_ros.detections.frame import FrameDetections3D, given_ids

FIELDS = {
    "vision_msgs/Detection3D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox3D bbox\nstring id"
    ),
    "vision_msgs/Detection3DArray": "std_msgs/Header header\nvision_msgs/Detection3D[] detections",
}


def convert(message: Message) -> FrameDetections3D:
    rows = message["detections"]
    ids, scope = given_ids(tuple(row["id"] for row in rows), "global")

    def column(field: str, axes: str) -> np.ndarray:
        values = [[row[f"bbox.{field}.{axis}"] for axis in axes] for row in rows]
        return np.array(values, np.float64).reshape(-1, len(axes))

    return FrameDetections3D(
        header=header_of(message),
        centre=column("center.position", "xyz"),
        orientation=column("center.orientation", "xyzw"),
        size=column("size", "xyz"),
        ids=ids,
        scores=tuple(hypotheses_of(row["results"]) for row in rows),
        id_scope=scope,
    )


ADAPTER = Adapter(("vision_msgs/Detection3DArray",), (FIELDS,), convert, in_space=True)
