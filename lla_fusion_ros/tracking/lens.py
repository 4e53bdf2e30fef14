"""The lens of a camera, as its CameraInfo describes it: pixels in, directions out, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from lla_fusion_ros.types.errors import InputError

# Numbers of distortion coefficients that each model may have; none at all is no distortion.
MODELS = {"plumb_bob": (4, 5), "rational_polynomial": (8, 12, 14), "equidistant": (4,), "": ()}
WIDEST = {"equidistant": np.deg2rad(110)}  # from the axis; other models are of flat images
FLAT = np.deg2rad(80)
AGAIN = 0.5  # pixels that a direction may miss its pixel by; more is distortion that cannot be undone
_STOP = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 40, 1e-10)


@dataclass(frozen=True)
class Lens:
    """A camera without its place in the world.

    Attributes:
        matrix: K of a CameraInfo, row by row.
        distortion: D, of the model `model`.
    """

    width: int
    height: int
    matrix: tuple[float, ...]
    model: str = "plumb_bob"
    distortion: tuple[float, ...] = ()

    @classmethod
    def checked(
        cls, width: int, height: int, matrix: Sequence[float], model: str, distortion: Sequence[float]
    ) -> Lens:
        """InputError names what no lens can have."""
        lens = cls(width, height, tuple(map(float, matrix)), model, tuple(map(float, distortion)))
        fx, _, cx, _, fy, cy = lens.matrix[:6]
        if not (np.isfinite(lens.matrix).all() and fx > 0 and fy > 0):
            raise InputError(f"its focal length is {fx:g} x {fy:g} pixels: is the camera calibrated?")
        if not (width > 0 and height > 0 and -width < cx < 2 * width and -height < cy < 2 * height):
            raise InputError(f"its principal point {cx:g}, {cy:g} lies outside its {width} x {height} image")
        if model not in MODELS:
            known = ", ".join(filter(None, MODELS))
            raise InputError(f"its distortion model '{model[:40]}' is none of {known}")
        if not np.isfinite(lens.distortion).all():
            raise InputError("its distortion is not finite")
        if any(lens.distortion) and len(lens.distortion) not in MODELS[model]:
            raise InputError(f"its distortion '{model}' has {len(lens.distortion)} coefficients")
        grid = np.stack(np.meshgrid(np.linspace(0, width, 9), np.linspace(0, height, 7)), -1).reshape(-1, 2)
        lost = np.isnan(lens.rays(grid)).any(axis=1).mean()
        if lost > 0.5:
            raise InputError(f"its distortion cannot be undone in {lost:.0%} of the image")
        return lens

    def rays(self, pixels: np.ndarray) -> np.ndarray:
        """Unit vectors, x right, y down, z ahead; nan where no direction falls there.  [n, 2] -> [n, 3]"""
        points = np.asarray(pixels, np.float64).reshape(-1, 1, 2)
        if not len(points):
            return np.empty((0, 3))
        k = self._k
        with np.errstate(all="ignore"):
            if not any(self.distortion):
                flat = (points[:, 0] - k[[0, 1], 2]) / k[[0, 1], [0, 1]]
            elif self.model == "equidistant":
                flat = cv2.fisheye.undistortPoints(points, k, np.array(self.distortion), criteria=_STOP)[:, 0]
            else:
                flat = cv2.undistortPointsIter(points, k, np.array(self.distortion), None, None, _STOP)[:, 0]
            rays = np.column_stack([flat, np.ones(len(flat))])
            rays /= np.linalg.norm(rays, axis=1, keepdims=True)
            if any(self.distortion):
                missed = np.abs(self.project(rays) - points[:, 0]).max(axis=1)
                rays[~(missed <= AGAIN)] = np.nan
        return rays

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels of points before the camera; nan behind it and far aside.  [n, 3] -> [n, 2]"""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        aside = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
        seen = (aside < WIDEST.get(self.model, FLAT)) & (points[:, 2] > 0)
        pixels = np.full((len(points), 2), np.nan)
        if not seen.any():
            return pixels
        zero = np.zeros(3)
        project = cv2.fisheye.projectPoints if self.model == "equidistant" else cv2.projectPoints
        given = np.array(self.distortion) if any(self.distortion) else np.zeros(4)
        if self.model == "equidistant":
            found, _ = project(points[seen][:, None], zero, zero, self._k, given)
        else:
            found, _ = project(points[seen], zero, zero, self._k, given)
        pixels[seen] = found.reshape(-1, 2)
        return pixels

    @property
    def _k(self) -> np.ndarray:
        return np.array(self.matrix).reshape(3, 3)
