"""From tracks to crops of one size."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import CropSet, Frame, TrackSet


def cut(trackset: TrackSet, size: int, margin: float, border: int = 0) -> CropSet:
    """Cut every box, grown by `margin` of its side on each side and stretched to `size`, as the nodes do.

    Args:
        border: pixels of surroundings to keep on each side, at the scale of the crop, for `degrade` to move
            over. A quarter of `size` suits all regimes.
    """
    if size < 1 or border < 0 or not 0 <= margin < 10:
        raise InputError(
            f"size={size}, margin={margin}, border={border}: expected size >= 1, margin and border >= 0"
        )
    frames = [
        (index, step) for index, track in enumerate(trackset.tracks) for step in range(len(track.frames))
    ]
    side = size + 2 * border
    # The border is a larger margin: the field of view, in boxes, grows with the side.
    wider = ((1 + 2 * margin) * side / size - 1) / 2
    images = np.empty((len(frames), side, side, 3), np.uint8)
    for row, (index, step) in enumerate(frames):
        frame = trackset.tracks[index].frames[step]
        images[row] = cut_crops(Pixels(frame.image, "rgb"), _centred(frame), side, wider)[0]
    return CropSet(
        images,
        track=np.array([index for index, _ in frames], np.int64),
        frame=np.array([step for _, step in frames], np.int64),
        camera=np.array([trackset.tracks[index].frames[step].camera for index, step in frames], np.int64),
        label=np.array([trackset.tracks[index].label for index, _ in frames], np.int64),
        border=border,
    )


def _centred(frame: Frame) -> np.ndarray:
    """The box as cx, cy, w, h.  [1, 4]"""
    x0, y0, x1, y1 = frame.box
    return np.array([[(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0]])
