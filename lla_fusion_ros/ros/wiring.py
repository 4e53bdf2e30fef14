"""From which topics a camera's images and boxes come, and of which type the boxes are on this graph."""

from __future__ import annotations

import importlib
import os

from rclpy.node import Node

from lla_fusion_ros.detections import adapter_for, known_types
from lla_fusion_ros.messages import contract
from lla_fusion_ros.ros.node_settings import CameraSettings
from lla_fusion_ros.types.errors import InputError


def topics_of(node: Node, camera: str, settings: CameraSettings) -> dict[str, str]:
    """What to subscribe to, before remaps, for each of a camera's inputs.

    Compressed images are those beside what the raw name is remapped to, unless they have their own remap.
    """
    image = (settings.image_topic or contract.image_topic(camera)).removesuffix("/compressed")
    compressed = f"{image}/compressed"
    if node.resolve_topic_name(compressed) == node.resolve_topic_name(compressed, only_expand=True):
        compressed = f"{node.resolve_topic_name(image)}/compressed"
    detections = settings.detections_topic or contract.detections_topic(camera)
    crops = contract.crops_topic(camera)
    resolved = node.resolve_topic_name(image)
    moved = bool(settings.image_topic) or resolved != node.resolve_topic_name(image, only_expand=True)
    beside = f"{resolved.rpartition('/')[0]}/camera_info" if moved else contract.camera_info_topic(camera)
    return {
        "camera_info": settings.camera_info_topic or beside,
        "image": image,
        "image/compressed": compressed,
        "detections": detections,
        "crops": crops,
        "crops/compressed": f"{crops}/compressed",
    }


def offered_types(node: Node, topic: str) -> list[str]:
    """The message types that publishers of a topic offer, as far as they are known by now."""
    return sorted({info.topic_type for info in node.get_publishers_info_by_topic(topic)})


def detections_class(type_name: str) -> type:
    """The Python class of a type of detections; InputError says what to install, or which types are known."""
    adapter = adapter_for(type_name)
    if adapter is None:
        raise InputError(
            f"messages of type {type_name[:100]} cannot be read as detections, only "
            + ", ".join(sorted(known_types()))
        )
    package, _, name = type_name.partition("/msg/")
    try:
        found: type = getattr(importlib.import_module(f"{package}.msg"), name)
        return found
    except (ImportError, AttributeError):
        apt = f"ros-{os.environ.get('ROS_DISTRO', 'jazzy')}-{package.replace('_', '-')}"
        raise InputError(
            f"the Python package {package} of {type_name} is missing here: source the workspace that has it, "
            f"or install {apt}"
        ) from None
