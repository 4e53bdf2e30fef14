"""Detections of any detector: message bytes in, boxes with ids and scores out, without ROS."""

from lla_fusion_ros.detections.adapter import Adapter
from lla_fusion_ros.detections.box_frame import BOX_FRAMES, to_image_pixels
from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.detections.registry import adapter_for, known_types
from lla_fusion_ros.detections.traps import Finding, Traps

__all__ = [
    "BOX_FRAMES",
    "Adapter",
    "Finding",
    "FrameDetections",
    "FrameDetections3D",
    "Traps",
    "adapter_for",
    "known_types",
    "to_image_pixels",
]
