"""The ground as one camera sees it, down to the horizon."""

from __future__ import annotations

import cv2
import numpy as np

from lla_fusion_ros.signworld import textures
from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.signworld.scene import Look

Window = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels, x1 and y1 exclusive

HAZE_DISTANCE = 260.0
_THICKEST_HAZE = 0.55  # the horizon stays a little darker than the sky
# Far rows of the image each cover metres of road and would flicker. So near rows show the texture, rows from
# 12 m on show it blurred along the road, and from 32 m on only its mean across the road.
_LEVELS = ((0.0, 0.0), (12.0, 0.5), (32.0, np.inf))  # distance, blur in metres
_OVERLAP = 0.5  # of the distance: where a level takes over from the one before


class Ground:
    """Keeps, for each pixel, the place on the ground it looks at."""

    def __init__(self, look: Look, camera: Camera) -> None:
        rays = camera.rays()
        down = np.minimum(rays[..., 1], -1e-4)
        self._x = (camera.offset[1] / -down * rays[..., 0]).astype(np.float32)
        self._z = (camera.offset[1] / -down * rays[..., 2]).astype(np.float32)
        below = (rays[..., 1] < -2e-3).all(axis=1)
        self.horizon = int(np.argmax(below)) if below.any() else camera.height  # first row of ground
        away = np.abs(camera.offset[1] / -down).min(axis=1)  # per row, metres ahead of the camera
        self._haze = (_THICKEST_HAZE * (1 - np.exp(-2 * away / HAZE_DISTANCE))).astype(np.float32)
        self._haze_colour = look.haze
        self._levels = [_level_texture(look.ground, blur) for _, blur in _LEVELS]
        starts = [start for start, _ in _LEVELS]
        self._weights = [
            np.clip((away - s) / max(_OVERLAP * s, 1e-6), 0, 1).astype(np.float32) for s in starts
        ]

    def render(self, eye: np.ndarray, window: Window) -> np.ndarray:
        """The window, all of it below the horizon, seen from `eye` (x, y, z).  [height, width, 3] uint8"""
        x0, y0, x1, y1 = window
        px, reach = np.float32(textures.GROUND_PIXELS_PER_METRE), textures.GROUND_HALF_WIDTH
        columns = np.clip(self._x[y0:y1, x0:x1] + np.float32(eye[0] + reach), 0.1, 2 * reach - 0.1) * px
        rows = (self._z[y0:y1, x0:x1] + np.float32(eye[2] % textures.GROUND_PERIOD)) * px
        ground = np.zeros((y1 - y0, x1 - x0, 3), np.uint8)
        for level, texture in enumerate(self._levels):
            weight = self._weights[level][y0:y1]
            hidden = (
                self._weights[level + 1][y0:y1] if level + 1 < len(self._levels) else np.zeros_like(weight)
            )
            used = np.flatnonzero((weight > 0) & (hidden < 1))
            if len(used) == 0:
                continue
            part = slice(int(used[0]), int(used[-1]) + 1)
            patch = cv2.remap(
                texture, columns[part], rows[part], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
            )
            ground[part] = _mix(ground[part], patch, weight[part])
        return _mix(ground, np.broadcast_to(self._haze_colour, ground.shape), self._haze[y0:y1])


def _mix(below: np.ndarray, above: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Row by row: `above` where the weight is 1, `below` where it is 0."""
    if weight.min() == 1:
        return above
    base = below.astype(np.float32)
    base += weight[:, None, None] * (above - base)
    return base.astype(np.uint8)


def _level_texture(ground: np.ndarray, blur: float) -> np.ndarray:
    """The texture repeated as far as its level reaches, blurred along the road."""
    if np.isinf(blur):
        return ground.mean(axis=0, keepdims=True).astype(np.uint8)
    repeated = np.concatenate([ground] * 3)
    if blur > 0:
        sigma = blur * textures.GROUND_PIXELS_PER_METRE
        repeated = cv2.GaussianBlur(repeated, (1, 2 * int(3 * sigma) + 1), sigmaX=0.1, sigmaY=sigma)
    return repeated
