"""Names and types of the topics that users rely on; relative, so that a namespace or remap can move them."""

from __future__ import annotations

from collections.abc import Callable

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
DETECTIONS = "vision_msgs/msg/Detection2DArray"
OBJECTS = "vision_msgs/msg/Detection3DArray"  # in space
LABEL_INFO = "vision_msgs/msg/LabelInfo"
VISION_INFO = "vision_msgs/msg/VisionInfo"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
ANNOTATIONS = "foxglove_msgs/msg/ImageAnnotations"
TRANSFORMS_TYPE = "tf2_msgs/msg/TFMessage"

FUSED_CLASSES = "fused_classes"
LABELS = "fused_classes/label_info"
OOD_WARNINGS = "ood_warnings"
TRACK_STATUS = "track_status"
CLASS_SETS = "class_sets"
DECISIONS = "decisions"
NODE_DIAGNOSTICS = "/diagnostics"  # absolute, where every diagnostics tool looks
TRANSFORMS, STATIC_TRANSFORMS = "/tf", "/tf_static"  # absolute as well

# Topics of a camera, below its name: what comes in, and the type it has.
INPUTS = {
    "image": IMAGE,
    "image/compressed": COMPRESSED_IMAGE,
    "detections": DETECTIONS,  # or any other type of `detections`
    "detections/label_info": LABEL_INFO,  # latched: the names of the detector's classes
    "crops": IMAGE,  # in the place of image and detections: one object a message, frame_id is its track id
    "crops/compressed": COMPRESSED_IMAGE,
    "views": DETECTIONS,
    "views/embeddings": IMAGE,
    "camera_info": CAMERA_INFO,  # where there is one
    "views/info": VISION_INFO,  # latched: which bundle the views come from
}


def is_rectified(image_topic: str) -> bool:
    """Whether images are rectified, by the usual names of their topics."""
    return image_topic.removesuffix("/compressed").endswith(("rect", "rect_color", "rect_mono", "rect_raw"))


def label_topic(detections: str) -> str:
    """Where a detector tells the names of its classes: latched, beside its detections."""
    return f"{detections}/label_info"


def _below_camera(name: str) -> Callable[[str], str]:
    """From a camera's name to that of its topic."""
    return lambda camera: f"{camera}/{name}"


image_topic = _below_camera("image")
compressed_topic = _below_camera("image/compressed")
detections_topic = _below_camera("detections")
crops_topic = _below_camera("crops")
views_topic = _below_camera("views")
embeddings_topic = _below_camera("views/embeddings")
views_info_topic = _below_camera("views/info")
camera_fused_topic = _below_camera("fused_classes")
annotated_topic = _below_camera("annotated")
annotations_topic = _below_camera("annotations")
camera_info_topic = _below_camera("camera_info")
