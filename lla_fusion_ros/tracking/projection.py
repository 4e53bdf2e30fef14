"""Boxes in space as boxes in a camera's image; they keep their ids, which hold in every camera."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.transforms import Pose, rotation_of

CORNERS = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
LEAST_SEEN = 0.3  # of a box, in the image


def in_image(found: FrameDetections3D, lens: Lens, pose: Pose) -> FrameDetections:
    """Those before the camera and mostly in its image, the nearest first.

    Args:
        pose: their frame seen from the camera.
    """
    boxes, rows = [], []
    away = np.linalg.norm(found.centre @ pose.rotation.T + pose.place, axis=1)
    for row in np.argsort(away, kind="stable").tolist():
        turn, size = found.orientation[row], found.size[row]
        length = np.linalg.norm(turn)
        if not (np.isfinite(found.centre[row]).all() and np.isfinite(size).all() and 0.5 < length < 2):
            continue
        corners = found.centre[row] + (CORNERS * size) @ rotation_of(turn / length).T
        pixels = lens.project(corners @ pose.rotation.T + pose.place)
        if np.isnan(pixels).any():
            continue
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        seen_low, seen_high = np.maximum(low, 0), np.minimum(high, (lens.width, lens.height))
        seen = np.maximum(seen_high - seen_low, 0)
        if seen.prod() >= LEAST_SEEN * (high - low).prod() > 0:
            boxes.append((*(seen_low + seen_high) / 2, 0.0, *seen))
            rows.append(row)
    return found.in_image(np.array(boxes, np.float64).reshape(-1, 5), rows)
