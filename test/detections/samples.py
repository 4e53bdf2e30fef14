"""A message of every type of detections, written by an independent implementation (rosbags)."""

from __future__ import annotations

from functools import cache

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from lla_fusion_ros.detections import adapter_for, known_types
from lla_fusion_ros.detections.standard import STANDARD
from lla_fusion_ros.messages.cdr import Header

HEADER = Header(1_700_000_000_123_456_789, "camera optical")
TYPES = sorted(known_types())
BOX = (320.5, 240.25, 0.0, 30.5, 20.0)


@cache
def store(type_name: str, version: int = 0):
    """A typestore of rosbags that has this package's definition of the type."""
    types = get_typestore(Stores.ROS2_JAZZY)
    adapter = adapter_for(type_name)
    for name, text in {**STANDARD, **adapter.definitions[version]}.items():
        if not name.startswith(("builtin", "std_msgs", "geometry", "sensor")):
            types.register(get_types_from_msg(text, name.replace("/", "/msg/")))
    return types


def build(types, name: str, values: dict):
    """A message with the given fields, the others zero; nested ones by dotted names."""
    primitives = {"string": "", "bool": False}
    fields = {}
    for field, (kind, of) in types.fielddefs[name][1]:
        inner = {key[len(field) + 1 :]: value for key, value in values.items() if key.startswith(field + ".")}
        kind = getattr(kind, "name", kind)
        if field in values:
            value = values[field]
            if kind == "SEQUENCE" and len(value) and isinstance(value[0], dict):
                value = [build(types, of[0][1], own) for own in value]
        elif kind == "BASE":
            value = primitives.get(of[0], 0)
        elif kind == "NAME":
            value = build(types, of, inner)
        elif kind == "ARRAY":
            element, count = of
            value = (
                np.zeros(count, element[1][0])
                if getattr(element[0], "name", "") == "BASE"
                else [build(types, element[1], {}) for _ in range(count)]
            )
        else:
            element = of[0]
            value = np.zeros(0, element[1][0]) if getattr(element[0], "name", "") == "BASE" else []
        fields[field] = value
    return types.types[name](**fields)


def write(type_name: str, values: dict, version: int = 0, little: bool = True) -> bytes:
    own = adapter_for(type_name).types[0].replace("/", "/msg/")
    types = store(type_name, version)
    head = {
        "header.stamp.sec": 1_700_000_000,
        "header.stamp.nanosec": 123_456_789,
        "header.frame_id": HEADER.frame_id,
    }
    message = build(types, own, {**head, **values})
    return bytes(types.serialize_cdr(message, own, little_endian=little))


def vision_box(x=BOX):
    names = (
        "bbox.center.position.x",
        "bbox.center.position.y",
        "bbox.center.theta",
        "bbox.size_x",
        "bbox.size_y",
    )
    return dict(zip(names, x, strict=True))


def result(name: str, score: float):
    return {"hypothesis.class_id": name, "hypothesis.score": score}


def test_one_message_of_each_type_is_looked_at_here():
    tested = {name for name in TYPES if "zed_interfaces" not in name}
    assert tested == {type_name for type_name, *_ in SAMPLES}


# type, fields of a message with one detection, expected ids, scope, scores, names
SAMPLES = [
    (
        "vision_msgs/Detection2DArray",
        {"detections": [{**vision_box(), "results": [result("7", 0.75), result("8", 0.25)], "id": "a"}]},
        ("a",),
        "camera",
        ((("7", 0.75), ("8", 0.25)),),
        {},
    ),
    (
        "vision_msgs/Detection3DArray",
        {
            "detections": [
                {
                    "bbox.center.position.x": 1.5,
                    "bbox.center.orientation.w": 1.0,
                    "bbox.size.z": 2.5,
                    "results": [result("car", 0.5)],
                    "id": "a",
                }
            ]
        },
        ("a",),
        "global",
        ((("car", 0.5),),),
        {},
    ),
    (
        "yolo_msgs/DetectionArray",
        {
            "detections": [
                {
                    "class_id": 11,
                    "class_name": "stop sign",
                    "score": 0.5,
                    "id": "3",
                    "bbox.center.position.x": BOX[0],
                    "bbox.center.position.y": BOX[1],
                    "bbox.size.x": BOX[3],
                    "bbox.size.y": BOX[4],
                    "bbox3d.frame_id": "odd",
                    "mask.data": [{"x": 1.0, "y": 2.0}] * 3,
                    "keypoints.data": [{"id": 1, "score": 0.5}] * 2,
                    "keypoints3d.data": [{"id": 1, "score": 0.5}],
                    "keypoints3d.frame_id": "even",
                }
            ]
        },
        ("3",),
        "camera",
        ((("11", 0.5),),),
        {"11": "stop sign"},
    ),
    (
        "ultralytics_ros/YoloResult",
        {"detections.detections": [{**vision_box(), "results": [result("stop sign", 0.5)]}]},
        None,
        "none",
        ((("stop sign", 0.5),),),
        {},
    ),
    (
        "depthai_ros_msgs/TrackDetection2DArray",
        {
            "detections": [
                {**vision_box(), "results": [result("4", 0.5)], "is_tracking": True, "tracking_id": "9"}
            ]
        },
        ("9",),
        "camera",
        ((("4", 0.5),),),
        {},
    ),
    (
        "depthai_ros_msgs/SpatialDetectionArray",
        {"detections": [{**vision_box(), "results": [{"class_id": "4", "score": 0.5}]}]},
        None,
        "none",
        ((("4", 0.5),),),
        {},
    ),
    (
        "tier4_perception_msgs/DetectedObjectsWithFeature",
        {
            "feature_objects": [
                {
                    "object.existence_probability": 0.5,
                    "object.classification": [{"label": 3, "probability": 1.0}],
                    "feature.roi.x_offset": 300,
                    "feature.roi.y_offset": 200,
                    "feature.roi.width": 40,
                    "feature.roi.height": 81,
                }
            ]
        },
        None,
        "none",
        ((("3", 0.5),),),
        {"3": "bus"},
    ),
    (
        "tier4_perception_msgs/TrafficLightRoiArray",
        {
            "rois": [
                {
                    "roi.x_offset": 300,
                    "roi.y_offset": 200,
                    "roi.width": 40,
                    "roi.height": 81,
                    "traffic_light_id": -(2**40),
                }
            ]
        },
        (str(-(2**40)),),
        "global",
        None,
        {},
    ),
    (
        "zed_msgs/ObjectsStamped",
        {
            "objects": [
                {
                    "label": "Person",
                    "label_id": 12,
                    "confidence": 50.0,
                    "tracking_available": True,
                    "bounding_box_2d.corners": "300, 200 to 340, 281",
                }
            ]
        },
        ("12",),
        "camera",
        ((("Person", 0.5),),),
        {},
    ),
]


def filled(types, values: dict) -> dict:
    """ZED's corners are messages of their own, clockwise from top left."""
    if "objects" not in values:
        return values
    point = types.types["zed_msgs/msg/Keypoint2Di"]
    corners = [point(kp=np.array(kp, np.uint32)) for kp in ((300, 200), (340, 200), (340, 281), (300, 281))]
    return {"objects": [{**own, "bounding_box_2d.corners": corners} for own in values["objects"]]}
