"""From tracks to crops of one size."""

from __future__ import annotations

import cv2
import numpy as np

from lla_fusion_ros.datasets.types import CropSet, TrackSet
from lla_fusion_ros.errors import InputError


def cut(trackset: TrackSet, size: int, margin: float, border: int = 0) -> CropSet:
    """Cut every box, grown by `margin` of its side on each side and stretched to `size`.

    Args:
        border: pixels of surroundings to keep on each side, at the scale of the crop, for `degrade` to move
            over. A quarter of `size` suits all regimes.
    """
    if size < 1 or border < 0 or not 0 <= margin < 10:
        raise InputError(
            f"size={size}, margin={margin}, border={border}: expected size >= 1, margin and border >= 0"
        )
    frames = [
        (index, step, track)
        for index, track in enumerate(trackset.tracks)
        for step in range(len(track.frames))
    ]
    side = size + 2 * border
    images = np.empty((len(frames), side, side, 3), np.uint8)
    grown = (1 + 2 * margin) * side / size  # field of view in boxes
    for row, (_, step, track) in enumerate(frames):
        frame = track.frames[step]
        x0, y0, x1, y1 = frame.box
        images[row] = _cut_one(
            frame.image, (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) * grown, (y1 - y0) * grown, side
        )
    return CropSet(
        images,
        track=np.array([index for index, _, _ in frames], np.int64),
        frame=np.array([step for _, step, _ in frames], np.int64),
        camera=np.array([track.frames[step].camera for _, step, track in frames], np.int64),
        label=np.array([track.label for _, _, track in frames], np.int64),
        border=border,
    )


def _cut_one(image: np.ndarray, cx: float, cy: float, width: float, height: float, side: int) -> np.ndarray:
    sx, sy = width / side, height / side
    matrix = np.array([[sx, 0, cx - width / 2 + sx / 2 - 0.5], [0, sy, cy - height / 2 + sy / 2 - 0.5]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(image, matrix, (side, side), flags=flags, borderMode=cv2.BORDER_REPLICATE)
