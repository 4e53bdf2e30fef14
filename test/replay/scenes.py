"""Small bags for the tests of replay: random images, boxes that move, ids that stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, DETECTIONS, IMAGE
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_compressed_image, write_image

START = 1_000_000_000_000
STEP = 100_000_000


def write_scene(
    path: Path,
    frames: int = 12,
    cameras: tuple[str, ...] = ("left", "right"),
    objects: int = 3,
    compressed: bool = False,
    detections_late_by: int = 0,
    detections_stamped: int = 0,
    stagger: int = 0,
    seed: int = 0,
    ids: Sequence[str] | None = None,
) -> Path:
    """A bag of images with tracked boxes, called `track 0` and so on or as `ids` says; times in ns.

    Detections may reach the recorder later than their image, and be stamped later; cameras may take their
    images in turn.
    """
    ids = [f"track {index}" for index in range(objects)] if ids is None else ids
    objects = len(ids)
    random = np.random.default_rng(seed)
    kind = COMPRESSED_IMAGE if compressed else IMAGE
    suffix = "/compressed" if compressed else ""
    messages = []
    for frame in range(frames):
        for number, camera in enumerate(cameras):
            stamp = START + frame * STEP + number * stagger
            header = Header(stamp, f"{camera}_optical")
            picture = random.integers(0, 256, (120, 160, 3), np.uint8)
            if compressed:
                data = cv2.imencode(".png", picture)[1].tobytes()
                image = write_compressed_image(header, data, "bgr8; png compressed bgr8")
            else:
                image = write_image(header, picture, "bgr8")
            boxes = np.zeros((objects, 5))
            row, column = np.divmod(np.arange(objects), 5)
            boxes[:, 0] = 20 + 30 * column + frame
            boxes[:, 1] = 60 + 20 * row
            boxes[:, 3:] = 16 + frame
            messages.append((stamp, f"/{camera}/image{suffix}", image))
            late, stamped = stamp + detections_late_by, Header(stamp + detections_stamped, header.frame_id)
            messages.append((late, f"/{camera}/detections", write_detections(stamped, ids, boxes)))
    with BagWriter(path) as writer:
        for camera in cameras:
            writer.add(f"/{camera}/image{suffix}", kind)
            writer.add(f"/{camera}/detections", DETECTIONS)
        for time, topic, data in sorted(messages, key=lambda message: message[0]):
            writer.write(topic, time, data)
    return path


def reorder_scene(scene: Path, path: Path, order: Sequence[tuple[str, int]]) -> Path:
    """The bag of `write_scene` with its frames, named by camera and stamp, recorded in another order."""
    with Bag(scene) as bag, BagWriter(path) as writer:
        messages = list(bag.messages())
        for topic, kind in {message.topic: message.type for message in messages}.items():
            writer.add(topic, kind)
        for place, (camera, stamp) in enumerate(order):
            for message in messages:
                if message.topic.startswith(f"/{camera}/") and message.time == stamp:
                    writer.write(message.topic, START + place * STEP, message.data)
    return path
