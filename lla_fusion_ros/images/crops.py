"""From an image message and boxes to the crops that networks see.

The image is never copied or converted as a whole where its encoding allows it: `Pixels` is a view of the
message's bytes, and only the small crops are resampled and turned to RGB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from lla_fusion_ros.images.file_checks import MAX_PIXELS, check_picture_file
from lla_fusion_ros.types.errors import InputError

Order = Literal["rgb", "bgr", "mono"]
Buffer = bytes | bytearray | memoryview | np.ndarray

# A box more than this many times as large as the image is a tracker's error, not an object.
MAX_BOX_TO_IMAGE = 4.0

LEAST_CONTRAST = 4  # grey levels between a crop's darkest and brightest value: the noise of a covered lens

# encoding -> (channels, order, dtype), as in sensor_msgs/image_encodings; alpha is dropped by a slice
PLAIN_ENCODINGS: dict[str, tuple[int, Order, str]] = {
    "bgr8": (3, "bgr", "u1"),
    "rgb8": (3, "rgb", "u1"),
    "8UC3": (3, "bgr", "u1"),
    "bgra8": (4, "bgr", "u1"),
    "rgba8": (4, "rgb", "u1"),
    "8UC4": (4, "bgr", "u1"),
    "mono8": (1, "mono", "u1"),
    "8UC1": (1, "mono", "u1"),
    "mono16": (1, "mono", "u2"),
    "16UC1": (1, "mono", "u2"),
    "bgr16": (3, "bgr", "u2"),
    "rgb16": (3, "rgb", "u2"),
}
# encoding -> (bytes per pixel, conversion to BGR); these need one pass over the whole image.
# OpenCV names a Bayer pattern by its second row, ROS by its first: bayer_rggb8 is OpenCV's "BG".
CONVERTED_ENCODINGS: dict[str, tuple[int, int]] = {
    "bayer_rggb8": (1, cv2.COLOR_BayerBG2BGR),
    "bayer_bggr8": (1, cv2.COLOR_BayerRG2BGR),
    "bayer_gbrg8": (1, cv2.COLOR_BayerGR2BGR),
    "bayer_grbg8": (1, cv2.COLOR_BayerGB2BGR),
    "uyvy": (2, cv2.COLOR_YUV2BGR_UYVY),
    "yuv422": (2, cv2.COLOR_YUV2BGR_UYVY),
    "yuyv": (2, cv2.COLOR_YUV2BGR_YUY2),
    "yuv422_yuy2": (2, cv2.COLOR_YUV2BGR_YUY2),
}


@dataclass(frozen=True, slots=True)
class Pixels:
    """An image as it lies in memory.

    Attributes:
        array: uint8 or uint16, often a view of a message's bytes.   [height, width] or [height, width, 3]
        order: what the last axis holds.
    """

    array: np.ndarray
    order: Order

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.array.shape[0], self.array.shape[1]


@dataclass(frozen=True, slots=True)
class BoxCheck:
    """Which boxes can be cropped.

    Attributes:
        keep: True where a crop can be cut.                                      [boxes]
        boxes: cx, cy, w, h clipped to the image; undefined where not kept.      [boxes, 4]
        reasons: how many boxes were left out, by reason.
    """

    keep: np.ndarray
    boxes: np.ndarray
    reasons: dict[str, int]


def decode_image(
    encoding: str, height: int, width: int, step: int, is_bigendian: bool, data: Buffer
) -> Pixels:
    """The pixels of a sensor_msgs/Image, without a copy for the plain encodings."""
    if encoding in PLAIN_ENCODINGS:
        channels, order, kind = PLAIN_ENCODINGS[encoding]
        depth = int(kind[1])
        rows = _rows(encoding, height, width, step, channels * depth, data)
        if depth == 2:
            rows = rows.view(">u2" if is_bigendian else "<u2")
        if channels == 1:
            return Pixels(rows, order)
        return Pixels(rows.reshape(height, width, channels)[..., :3], order)
    if encoding in CONVERTED_ENCODINGS:
        depth, conversion = CONVERTED_ENCODINGS[encoding]
        rows = _rows(encoding, height, width, step, depth, data)
        return _convert(encoding, rows if depth == 1 else rows.reshape(height, width, depth), conversion)
    known = ", ".join([*PLAIN_ENCODINGS, *CONVERTED_ENCODINGS])
    raise InputError(f"image encoding '{encoding[:40]}' is not one of {known}")


def _rows(encoding: str, height: int, width: int, step: int, pixel_bytes: int, data: Buffer) -> np.ndarray:
    """The used bytes of each row, padding left out.  [height, width * pixel_bytes] uint8"""
    if height <= 0 or width <= 0 or height * width > MAX_PIXELS:
        raise InputError(f"image of {width} x {height} pixels is empty or larger than {MAX_PIXELS} pixels")
    used = width * pixel_bytes
    if step < used:
        raise InputError(f"image step {step} is less than the {used} bytes of {width} {encoding} pixels")
    flat = np.frombuffer(data, np.uint8)
    # the last row may come without its padding
    if len(flat) < step * (height - 1) + used:
        raise InputError(f"image of {height} rows of {step} bytes has only {len(flat)} bytes of data")
    return np.lib.stride_tricks.as_strided(flat, (height, used), (step, 1), writeable=False)


def _convert(encoding: str, rows: np.ndarray, conversion: int) -> Pixels:
    try:
        return Pixels(cv2.cvtColor(np.ascontiguousarray(rows), conversion), "bgr")
    except cv2.error as error:
        raise InputError(f"image of {rows.shape[1]} x {rows.shape[0]} pixels is no {encoding}") from error


def decode_compressed(data: Buffer, format: str = "") -> Pixels:
    """The pixels of a sensor_msgs/CompressedImage: JPEG or PNG, told by its own first bytes.

    A file that ends early is refused: decoders fill the missing part with grey, which is not evidence.
    """
    if "compressedDepth" in format:
        raise InputError("a compressedDepth image has no colours to classify")
    flat = np.frombuffer(data, np.uint8)
    check_picture_file(flat)
    try:
        array = cv2.imdecode(flat, cv2.IMREAD_UNCHANGED)
    except cv2.error:
        array = None
    if array is None or array.dtype not in (np.uint8, np.uint16):
        raise InputError(f"compressed image of {len(flat)} bytes cannot be decoded")
    if array.ndim == 2:
        return Pixels(array, "mono")
    return Pixels(array[..., :3], "bgr")


def check_boxes(boxes: np.ndarray, image_shape: tuple[int, int], min_size: float) -> BoxCheck:
    """Sort out boxes that are not finite, not positive, absurdly large, outside or too small.

    Args:
        boxes: cx, cy, w, h in pixels.  [boxes, 4]
        min_size: the least width and height, in pixels, of what is left after clipping to the image.
    """
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    height, width = image_shape
    limit = np.array([width, height], np.float64)
    finite = np.asarray(np.isfinite(boxes).all(axis=1))
    boxes = np.where(finite[:, None], boxes, 0.0)
    positive = (boxes[:, 2:] > 0).all(axis=1)
    sane = (np.abs(boxes[:, :2]) <= MAX_BOX_TO_IMAGE * limit).all(axis=1)
    sane &= (boxes[:, 2:] <= MAX_BOX_TO_IMAGE * limit).all(axis=1)
    half = np.where(sane[:, None], boxes[:, 2:] / 2, 0.0)
    low = np.clip(boxes[:, :2] - half, 0, limit)
    high = np.clip(boxes[:, :2] + half, 0, limit)
    inside = (high > low).all(axis=1)
    large = (high - low >= min_size).all(axis=1)
    reasons: dict[str, int] = {}
    keep = np.ones(len(boxes), bool)
    for reason, good in (
        ("box_not_finite", finite),
        ("box_inverted", positive),
        ("box_absurd", sane),
        ("box_outside", inside),
        ("box_too_small", large),
    ):
        count = int((keep & ~good).sum())
        if count:
            reasons[reason] = count
        keep &= good
    return BoxCheck(keep, np.concatenate([(low + high) / 2, high - low], axis=1), reasons)


def cut_crops(pixels: Pixels, boxes: np.ndarray, size: int, margin: float) -> np.ndarray:
    """Crops of all boxes, each grown by `margin` of its side on every side and stretched to a square.

    Sampling is exact to 1/32 pixel, large boxes are area-averaged first, and what lies outside the image
    repeats its edge.

    Args:
        boxes: cx, cy, w, h in pixels, finite and positive.  [boxes, 4]

    Returns:
        RGB crops.  [boxes, size, size, 3] uint8
    """
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    if not (np.isfinite(boxes).all() and (boxes[:, 2:] > 0).all()):
        raise InputError("boxes to crop must be finite with positive width and height; see check_boxes")
    array = pixels.array
    crops = np.empty((len(boxes), size, size, *array.shape[2:]), array.dtype.newbyteorder("="))
    sides = boxes[:, 2:] * (1 + 2 * margin)
    corners = boxes[:, :2] - sides / 2
    for crop, (left, top), (box_width, box_height) in zip(
        crops, corners.tolist(), sides.tolist(), strict=True
    ):
        _sample(array, left, top, box_width, box_height, crop)
    if crops.dtype != np.uint8:
        crops = (crops >> 8).astype(np.uint8)
    if pixels.order == "mono":
        return np.repeat(crops[..., None], 3, axis=-1)
    return np.ascontiguousarray(crops[..., ::-1]) if pixels.order == "bgr" else crops


def shows_something(crops: np.ndarray) -> np.ndarray:
    """Which crops hold more than one even colour; a network would name a class for a black one, too.

    [crops, size, size, 3] uint8 -> [crops] bool
    """
    return np.ptp(crops, axis=(1, 2, 3)) >= LEAST_CONTRAST


def _sample(array: np.ndarray, left: float, top: float, width: float, height: float, out: np.ndarray) -> None:
    """Resample one box of the image into `out` [size, size(, 3)]."""
    size = out.shape[0]
    rows, columns = array.shape[:2]
    # one pixel more on each side feeds the interpolation at the box's rim
    x0, x1 = _span(left, width, columns)
    y0, y1 = _span(top, height, rows)
    part = np.ascontiguousarray(array[y0:y1, x0:x1], dtype=out.dtype)
    shrink_x = max(1, int(width // size))
    shrink_y = max(1, int(height // size))
    if shrink_x > 1 or shrink_y > 1:
        shape = (-(-(x1 - x0) // shrink_x), -(-(y1 - y0) // shrink_y))
        part = cv2.resize(part, shape, interpolation=cv2.INTER_AREA)
    scale_x = part.shape[1] / (x1 - x0)
    scale_y = part.shape[0] / (y1 - y0)
    # centre of output pixel u -> source coordinate; OpenCV's pixel centres are integers, hence the halves
    matrix = np.array(
        [
            [width / size * scale_x, 0, (left - x0 + width / size / 2) * scale_x - 0.5],
            [0, height / size * scale_y, (top - y0 + height / size / 2) * scale_y - 0.5],
        ]
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(part, matrix, (size, size), dst=out, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def _span(start: float, length: float, limit: int) -> tuple[int, int]:
    """The pixels of one axis that a box touches: at least one, also for a box outside the image."""
    first = min(max(int(np.floor(start)) - 1, 0), limit - 1)
    last = min(max(int(np.ceil(start + length)) + 1, first + 1), limit)
    return first, last
