"""Detections of any detector: message bytes in, boxes with ids and scores out.

One file in `adapters` for each message type; `frame` is what they make, `traps` finds what is wrong with it.
Imports `types` and `messages`.
"""

from lla_fusion_ros.detections.adapter import Adapter, adapter_for, known_types
from lla_fusion_ros.detections.frame import BOX_FRAMES, FrameDetections, FrameDetections3D, to_image_pixels
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
