"""Names and types of the topics that users rely on; relative, so that a namespace or remap can move them."""

from __future__ import annotations

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
DETECTIONS = "vision_msgs/msg/Detection2DArray"
LABEL_INFO = "vision_msgs/msg/LabelInfo"
VISION_INFO = "vision_msgs/msg/VisionInfo"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"

FUSED_CLASSES = "fused_classes"
LABELS = "fused_classes/label_info"
OOD_WARNINGS = "ood_warnings"
NODE_DIAGNOSTICS = "/diagnostics"  # absolute, where every diagnostics tool looks

# Topics of a camera, below its name: what comes in, and the type it has.
INPUTS = {
    "image": IMAGE,
    "image/compressed": COMPRESSED_IMAGE,
    "detections": DETECTIONS,  # or any other type of `detections`
    "crops": IMAGE,  # in the place of image and detections: one object a message, frame_id is its track id
    "crops/compressed": COMPRESSED_IMAGE,
    "views": DETECTIONS,
    "views/embeddings": IMAGE,
    "views/info": VISION_INFO,  # latched: which bundle the views come from
}


def image_topic(camera: str) -> str:
    return f"{camera}/image"


def compressed_topic(camera: str) -> str:
    return f"{camera}/image/compressed"


def detections_topic(camera: str) -> str:
    return f"{camera}/detections"


def crops_topic(camera: str) -> str:
    return f"{camera}/crops"


def views_topic(camera: str) -> str:
    return f"{camera}/views"


def embeddings_topic(camera: str) -> str:
    return f"{camera}/views/embeddings"


def views_info_topic(camera: str) -> str:
    return f"{camera}/views/info"


def camera_fused_topic(camera: str) -> str:
    return f"{camera}/fused_classes"


def annotated_topic(camera: str) -> str:
    return f"{camera}/annotated"
