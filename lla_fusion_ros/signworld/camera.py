"""The cameras of the vehicle: where a point of the world falls in the image.

World: x to the right of the road's middle, y up, z along the road, in metres; a left-handed frame, as often
in graphics. The vehicle drives along z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True, slots=True)
class Camera:
    """A pinhole camera fixed to the vehicle.

    Attributes:
        offset: x, y, z on the vehicle, y above the road, in metres.
        yaw, pitch: viewing direction in degrees, right and up positive.
        focal: focal length in pixels.
        gain: exposure; 1 is a normally exposed day.
        tint: factors of red, green and blue.
    """

    name: str
    offset: tuple[float, float, float] = (0.0, 1.5, 0.0)
    yaw: float = 0.0
    pitch: float = 0.0
    focal: float = 600.0
    gain: float = 1.0
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    width: int = 640
    height: int = 480

    def rotation(self) -> np.ndarray:
        """World to camera (x right, y down, z ahead).  [3, 3]"""
        return _rotation(self.yaw, self.pitch)

    def project(self, points: np.ndarray, vehicle: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Pixels [n, 2] and depths [n] of world points [n, 3], the vehicle standing at x, z."""
        seen = (points - self.position(vehicle)) @ self.rotation().T
        depth = seen[:, 2]
        safe = np.where(depth > 1e-6, depth, np.nan)[:, None]  # behind the camera nothing has a pixel
        centre = np.array([(self.width - 1) / 2, (self.height - 1) / 2])
        return centre + self.focal * seen[:, :2] / safe, depth

    def position(self, vehicle: tuple[float, float]) -> np.ndarray:
        """Where the camera is in the world, [3]."""
        x, y, z = self.offset
        return np.array([vehicle[0] + x, y, vehicle[1] + z])

    def rays(self) -> np.ndarray:
        """The direction each pixel looks in, in the world, [height, width, 3], not normalised."""
        u = (np.arange(self.width) - (self.width - 1) / 2) / self.focal
        v = (np.arange(self.height) - (self.height - 1) / 2) / self.focal
        directions = np.stack(np.broadcast_arrays(u[None, :], v[:, None], 1.0), axis=-1)
        return directions @ self.rotation()


@lru_cache(maxsize=64)
def _rotation(yaw_degrees: float, pitch_degrees: float) -> np.ndarray:
    yaw, pitch = np.deg2rad([yaw_degrees, pitch_degrees])
    ahead = np.array([np.sin(yaw) * np.cos(pitch), np.sin(pitch), np.cos(yaw) * np.cos(pitch)])
    right = np.array([np.cos(yaw), 0.0, -np.sin(yaw)])
    down = np.cross(right, ahead)  # the world is left-handed, the image right-handed
    return np.stack([right, down, ahead])
