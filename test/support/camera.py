"""A camera and its tracker on the graph: publishes images and tracked boxes as stock nodes do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import compressed_topic, detections_topic, image_topic
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_compressed_image, write_image

SECOND = 1_000_000_000
START = 1000 * SECOND
TENTH = SECOND // 10
BOXES = np.array([[20.0, 20, 16, 16], [60, 40, 20, 12]])  # within `scene`


def scene(seed: int) -> np.ndarray:
    """A picture of noise.  [60, 80, 3]"""
    return np.random.default_rng(seed).integers(0, 255, (60, 80, 3), np.uint8)


class CameraOnGraph:
    """Publishes frames of one camera; `compressed` is "", "jpeg" or "png"."""

    def __init__(self, node: Node, name: str, compressed: str = "", qos: Any = 50) -> None:
        self.name = name
        self._compressed = compressed
        if compressed:
            self.images = node.create_publisher(CompressedImage, compressed_topic(name), qos)
        else:
            self.images = node.create_publisher(Image, image_topic(name), qos)
        self.detections = node.create_publisher(Detection2DArray, detections_topic(name), qos)

    def send(self, stamp: int, image: np.ndarray, ids: Sequence[str], boxes: Any) -> None:
        """An RGB image [height, width, 3] and boxes [n, 4] as cx, cy, w, h."""
        self.send_image(stamp, image)
        self.send_boxes(stamp, ids, boxes)

    def send_image(self, stamp: int, image: np.ndarray) -> None:
        header = Header(stamp, self.name)
        if self._compressed:
            file = cv2.imencode(f".{self._compressed}", image[..., ::-1])[1].tobytes()
            self.images.publish(write_compressed_image(header, file, self._compressed))
        else:
            self.images.publish(write_image(header, image, "rgb8"))

    def send_boxes(self, stamp: int, ids: Sequence[str], boxes: Any) -> None:
        boxes = np.asarray(boxes, float).reshape(-1, 4)
        bbox = np.insert(boxes, 2, 0.0, axis=1)
        self.detections.publish(write_detections(Header(stamp, self.name), ids, bbox))


def stamp_of(message: Any) -> int:
    """Nanoseconds of a message's header."""
    return message.header.stamp.sec * SECOND + message.header.stamp.nanosec


def pmf_of(detection: Any, classes: int = 0) -> np.ndarray:
    """Class distribution of a Detection2D, in the order of the classes.  [classes]

    `classes` is needed where only the likely ones are listed: the others share the rest.
    """
    listed = {result.hypothesis.class_id: result.hypothesis.score for result in detection.results}
    rest = listed.pop("", 0.0)
    classes = classes or len(listed)
    pmf = np.full(classes, rest / max(classes - len(listed), 1))
    for class_id, score in listed.items():
        pmf[int(class_id)] = score
    return pmf


def counted(diagnostics: Sequence[Any], camera: str, key: str) -> int:
    """A counter of a camera in the newest /diagnostics, or 0."""
    for message in reversed(diagnostics):
        for status in message.status:
            if status.name.endswith(f"camera {camera}"):
                return int({pair.key: pair.value for pair in status.values}.get(key, 0))
    return 0
