"""What loaders share: reading image files, the parts of a data set, the digest that names what was read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import cv2
import numpy as np

from lla_fusion_ros.images.file_checks import JPEG_MAGIC, PNG_MAGIC, check_picture_file
from lla_fusion_ros.types.errors import DatasetError, InputError
from lla_fusion_ros.types.track_set import Frame, Track

Part = Literal["train", "test", "all"]
IMAGE_EXTENSIONS = frozenset({".ppm", ".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"})
_LONGEST_SIDE = 16384  # a header that claims more is a damaged file, not a photograph
_PPM_HEADER = re.compile(rb"P6(?:\s|#[^\n]*\n)+(\d{1,6})\s+(\d{1,6})\s+(\d{1,6})\s")


def read_image(path: Path) -> np.ndarray:
    """The image as RGB, [height, width, 3] uint8; DatasetError where the file is not a whole image."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"cannot read image '{path}': {error.strerror}") from error
    return decode_ppm(data, path) if data[:2] == b"P6" else _decode_other(data, path)


def decode_ppm(data: bytes, path: Path) -> np.ndarray:
    """A binary PPM as RGB; ours because 29,000 small files decode three times faster than through OpenCV."""
    header = _PPM_HEADER.match(data[:512])
    if header is None:
        raise DatasetError(f"image '{path}' has a damaged PPM header; copy the file again")
    width, height, maximum = (int(group) for group in header.groups())
    if not (0 < width <= _LONGEST_SIDE and 0 < height <= _LONGEST_SIDE and maximum == 255):
        raise DatasetError(
            f"image '{path}' claims {width}x{height} pixels of maximum {maximum}, expected 8 bit"
        )
    expected = width * height * 3
    if len(data) - header.end() < expected:
        raise DatasetError(
            f"image '{path}' is cut short: {len(data) - header.end()} bytes of pixels, expected {expected}"
        )
    return np.frombuffer(data, np.uint8, expected, header.end()).reshape(height, width, 3)


def _decode_other(data: bytes, path: Path) -> np.ndarray:
    pixels = None
    if data:
        flat = np.frombuffer(data, np.uint8)
        try:
            if data.startswith((PNG_MAGIC, JPEG_MAGIC)):
                check_picture_file(flat)
            pixels = cv2.imdecode(flat, cv2.IMREAD_COLOR)
        except cv2.error as error:
            raise DatasetError(f"image '{path}' cannot be decoded: {error.err}") from error
        except InputError as error:
            raise DatasetError(f"image '{path}' cannot be decoded: {error}") from error
    if pixels is None:
        raise DatasetError(f"image '{path}' cannot be decoded ({len(data)} bytes); copy the file again")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)


class TracksDigest:
    """SHA-256 over names, labels, boxes and pixels, in order; fed as they are read."""

    def __init__(self, class_names: Iterable[str]) -> None:
        self._sha = hashlib.sha256("\n".join(class_names).encode())

    def begin_track(self, name: str, label: int) -> None:
        self._sha.update(f"|{name}|{label}".encode())

    def add_frame(self, frame: Frame) -> None:
        """One more frame of the track begun last."""
        self._sha.update(repr((frame.box, frame.camera, frame.image.shape)).encode())
        self._sha.update(np.ascontiguousarray(frame.image).data)

    def hexdigest(self) -> str:
        return self._sha.hexdigest()


def digest_tracks(class_names: Iterable[str], tracks: Iterable[Track]) -> str:
    """The digest of tracks that are in memory."""
    digest = TracksDigest(class_names)
    for track in tracks:
        digest.begin_track(track.id, track.label)
        for frame in track.frames:
            digest.add_frame(frame)
    return digest.hexdigest()


def shrunk(frame: Frame, pixels: int) -> Frame:
    """The frame with an image of at most so many pixels, its box with it; the shape stays."""
    height, width = frame.image.shape[:2]
    scale = (pixels / (height * width)) ** 0.5
    if scale >= 1:
        return frame
    size = max(1, int(width * scale)), max(1, int(height * scale))
    image = cv2.resize(frame.image, size, interpolation=cv2.INTER_AREA)
    across, down = size[0] / width, size[1] / height
    x0, y0, x1, y1 = frame.box
    return replace(frame, image=image, box=(x0 * across, y0 * down, x1 * across, y1 * down))


def parts_of(part: Part) -> tuple[Literal["train", "test"], ...]:
    """The parts that a word stands for."""
    if part == "all":
        return "train", "test"
    if part not in ("train", "test"):
        raise InputError(f"part '{part}' is unknown, expected one of {', '.join(get_args(Part))}")
    return (part,)
