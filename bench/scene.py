"""The load of bench: as many cameras and as many signs in every frame as wanted, as a bag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.lab.makebag.write import SceneFrame, make_bag
from lla_fusion_ros.signworld import CLASS_NAMES
from lla_fusion_ros.signworld.signs import face_of

RATE = 10.0
SIZE, RAW_SIZE = (640, 480), (1920, 1080)  # width, height
_PICTURES = 8  # different ones; they are shown over and over
_BEGIN = 10**18  # stamp of the first frame


def camera_names(count: int) -> list[str]:
    return [f"camera{number}" for number in range(1, count + 1)]


def write_scene(bag: Path, cameras: int, objects: int, seconds: float, raw: bool = False) -> Path:
    """Cameras that are triggered together; an object keeps its id and its class, and sways a little."""
    frames = _frames(cameras, objects, seconds, RAW_SIZE if raw else SIZE)
    make_bag(frames, bag, "bench", CLASS_NAMES, "raw" if raw else "jpeg", overwrite=True)
    return bag


def _frames(cameras: int, objects: int, seconds: float, size: tuple[int, int]) -> Iterator[SceneFrame]:
    pictures = [_picture(objects, number, *size) for number in range(_PICTURES)]
    ids = tuple(map(str, range(1, objects + 1)))
    classes = tuple(CLASS_NAMES[number % len(CLASS_NAMES)] for number in range(objects))
    for step in range(round(seconds * RATE)):
        stamp = _BEGIN + round(step * 1e9 / RATE)
        for camera in camera_names(cameras):
            image, boxes = pictures[step % _PICTURES]
            yield SceneFrame(camera, stamp, image, boxes, ids, classes)


def _picture(objects: int, number: int, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """RGB image and boxes cx, cy, w, h: signs on a grid."""
    noise = np.random.default_rng(number).integers(60, 180, (height // 8, width // 8, 3)).astype(np.uint8)
    image = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
    columns = int(np.ceil(np.sqrt(objects * width / height)))
    rows = -(-objects // columns)
    side = min(int(0.6 * width / columns), int(0.6 * height / rows), 64)
    sway = round(0.1 * side * np.sin(2 * np.pi * number / _PICTURES))
    boxes = np.empty((objects, 4))
    for index in range(objects):
        left = round((index % columns + 0.5) * width / columns - side / 2) + sway
        top = round((index // columns + 0.5) * height / rows - side / 2)
        face = cv2.resize(face_of(CLASS_NAMES[index % len(CLASS_NAMES)]), (side, side)).astype(np.float32)
        part = image[top : top + side, left : left + side]
        part[:] = part * (1 - face[..., 3:] / 255) + face[..., :3]
        boxes[index] = left + side / 2, top + side / 2, side, side
    return image, boxes
