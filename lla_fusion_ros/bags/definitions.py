"""Message definitions that recorded bags must carry, so that any tool can decode them later.

`rosbags` knows the common ROS 2 messages; vision_msgs 4.1 and foxglove_msgs' annotations are given here. A
test keeps the texts of vision_msgs equal, field for field, to `interfaces/vision_msgs` and their hashes to
those of stock ROS 2.
"""

from __future__ import annotations

from functools import lru_cache

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

VISION_MSGS = {
    "vision_msgs/msg/Point2D": "float64 x\nfloat64 y\n",
    "vision_msgs/msg/Pose2D": "vision_msgs/Point2D position\nfloat64 theta\n",
    "vision_msgs/msg/BoundingBox2D": "vision_msgs/Pose2D center\nfloat64 size_x\nfloat64 size_y\n",
    "vision_msgs/msg/ObjectHypothesis": "string class_id\nfloat64 score\n",
    "vision_msgs/msg/ObjectHypothesisWithPose": (
        "vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose\n"
    ),
    "vision_msgs/msg/Detection2D": (
        "std_msgs/Header header\n"
        "vision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\n"
        "string id\n"
    ),
    "vision_msgs/msg/Detection2DArray": "std_msgs/Header header\nvision_msgs/Detection2D[] detections\n",
    "vision_msgs/msg/VisionClass": "uint16 class_id\nstring class_name\n",
    "vision_msgs/msg/LabelInfo": (
        "std_msgs/Header header\nvision_msgs/VisionClass[] class_map\nfloat32 threshold\n"
    ),
    "vision_msgs/msg/VisionInfo": (
        "std_msgs/Header header\nstring method\nstring database_location\nint32 database_version\n"
    ),
}

_TIME = "builtin_interfaces/Time timestamp\n"
FOXGLOVE_MSGS = {
    "foxglove_msgs/msg/Color": "float64 r\nfloat64 g\nfloat64 b\nfloat64 a\n",
    "foxglove_msgs/msg/Point2": "float64 x\nfloat64 y\n",
    "foxglove_msgs/msg/CircleAnnotation": (
        f"{_TIME}foxglove_msgs/Point2 position\nfloat64 diameter\nfloat64 thickness\n"
        "foxglove_msgs/Color fill_color\nfoxglove_msgs/Color outline_color\n"
    ),
    "foxglove_msgs/msg/PointsAnnotation": (
        f"{_TIME}uint8 UNKNOWN=0\nuint8 POINTS=1\nuint8 LINE_LOOP=2\nuint8 LINE_STRIP=3\nuint8 LINE_LIST=4\n"
        "uint8 type\nfoxglove_msgs/Point2[] points\nfoxglove_msgs/Color outline_color\n"
        "foxglove_msgs/Color[] outline_colors\nfoxglove_msgs/Color fill_color\nfloat64 thickness\n"
    ),
    "foxglove_msgs/msg/TextAnnotation": (
        f"{_TIME}foxglove_msgs/Point2 position\nstring text\nfloat64 font_size\n"
        "foxglove_msgs/Color text_color\nfoxglove_msgs/Color background_color\n"
    ),
    "foxglove_msgs/msg/ImageAnnotations": (
        "foxglove_msgs/CircleAnnotation[] circles\nfoxglove_msgs/PointsAnnotation[] points\n"
        "foxglove_msgs/TextAnnotation[] texts\n"
    ),
}


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """All message types this package writes."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in (*VISION_MSGS.items(), *FOXGLOVE_MSGS.items()):
        store.register(get_types_from_msg(text, name))
    return store


def fits_vision_msgs(type_name: str, definition: str) -> bool:
    """Whether a recorded definition has the fields of vision_msgs 4.1; older ones have others, and no ids.

    A bag that carries no definition is taken at its word.
    """
    if not definition:
        return True
    own = _blocks(typestore().generate_msgdef(type_name, ros_version=2)[0])
    recorded = _blocks(definition)
    return all(recorded.get(name) == fields for name, fields in own.items())


def _blocks(definition: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Fields (type, name) of a definition text and of the types it lists below itself, short type names."""
    fields: dict[str, tuple[tuple[str, str], ...]] = {}
    name = ""
    rows: list[tuple[str, str]] = []
    for line in definition.splitlines():
        text = line.split("#", 1)[0].strip()
        if set(text) == {"="}:
            fields[name], rows = tuple(rows), []
        elif text.startswith("MSG:"):
            name = text[4:].strip().replace("/msg/", "/")
        elif len(parts := text.split()) >= 2 and "=" not in text:
            rows.append((parts[0].replace("/msg/", "/").rpartition("/")[2], parts[1]))
    fields[name] = tuple(rows)
    return fields
