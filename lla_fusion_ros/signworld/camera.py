"""The cameras of the vehicle: where a point of the world falls in the image, and how light becomes pixels.

World: x to the right of the road's middle, y up, z along the road, in metres; a left-handed frame, as often
in graphics. The vehicle drives along z.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import cv2
import numpy as np

_RAIN_LAYERS = 5
_SUN = (14.0, 11.0)  # azimuth and elevation in degrees


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


@dataclass(frozen=True, slots=True)
class Conditions:
    """What stands between the scene and the pixels.

    Attributes:
        light: brightness, 1 is day, .2 dusk.
        blur: sigma in pixels.
        smear: length of horizontal motion blur in pixels.
        noise: sigma, 1 is full scale.
        rain, glare: 0 is none, 1 is heavy.
        jitter: standard deviation of the tracker's boxes, in shares of their sides.
    """

    light: float = 1.0
    blur: float = 0.4
    smear: float = 0.0
    noise: float = 0.008
    rain: float = 0.0
    glare: float = 0.0
    jitter: float = 0.02

    def towards(self, other: Conditions, share: float) -> Conditions:
        """Between the two: 0 is this one, 1 the other."""
        values = {
            field.name: (1 - share) * getattr(self, field.name) + share * getattr(other, field.name)
            for field in fields(self)
        }
        return Conditions(**values)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """What JPEG leaves of an image at half the colour resolution (4:2:0), the way cameras send it.

    RGB uint8 -> the same
    """
    bgr = np.ascontiguousarray(image[..., ::-1])
    coded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    decoded = cv2.imdecode(coded, cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.ascontiguousarray(decoded[..., ::-1])


class Optics:
    """The optics and sensor of one camera."""

    def __init__(self, camera: Camera, seed: int) -> None:
        rng = np.random.default_rng([seed, 2])
        height, width = camera.height, camera.width
        y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
        vignette = 1 - 0.16 * (x * x + y * y)
        self._response = vignette[..., None] * np.array(camera.tint, np.float32) * np.float32(camera.gain)
        self._glare = _sun(camera)
        self._rain = [_streaks(height, width, rng) for _ in range(_RAIN_LAYERS)]
        self._grain = rng.standard_normal((height + 64, width + 64, 3), dtype=np.float32)

    def expose(
        self,
        scene: np.ndarray,
        conditions: Conditions,
        rng: np.random.Generator,
        origin: tuple[int, int] = (0, 0),
    ) -> np.ndarray:
        """The image of a scene, or of a window of it whose upper left pixel is `origin` (x, y).  uint8"""
        height, width = scene.shape[:2]
        part = np.s_[origin[1] : origin[1] + height, origin[0] : origin[0] + width]
        # Drawn in any case, so that one effect more or less does not change all the others.
        layer, dy, dx = int(rng.integers(_RAIN_LAYERS)), int(rng.integers(64)), int(rng.integers(64))
        light = _blur(scene, conditions).astype(np.float32)
        if conditions.rain > 0:
            light *= 1 - 0.3 * conditions.rain
            light += 42 * conditions.rain + 70 * conditions.rain * self._rain[layer][part][..., None]
        dusk = 1 + np.array([-0.12, -0.03, 0.12], np.float32) * np.float32(max(0.0, 1 - conditions.light))
        light *= self._response[part] * (np.float32(conditions.light) * dusk)
        if conditions.glare > 0:
            light += conditions.glare * self._glare[part][..., None] * np.array([255, 240, 205], np.float32)
        if conditions.noise > 0:
            grain = self._grain[dy : dy + self._response.shape[0], dx : dx + self._response.shape[1]][part]
            light += np.float32(255 * conditions.noise) * grain
        return np.clip(light, 0, 255, out=light).astype(np.uint8)


def _blur(scene: np.ndarray, conditions: Conditions) -> np.ndarray:
    if conditions.smear >= 1.5:
        scene = cv2.blur(scene, (int(round(conditions.smear)), 1))
    if conditions.blur > 0.2:
        width = 2 * int(np.ceil(2.5 * conditions.blur)) + 1
        scene = cv2.GaussianBlur(scene, (width, width), conditions.blur)
    return scene


def _sun(camera: Camera) -> np.ndarray:
    """Veil and disc of a low sun ahead, [height, width]."""
    azimuth, elevation = np.deg2rad(_SUN)
    sun = np.array(
        [np.sin(azimuth) * np.cos(elevation), np.sin(elevation), np.cos(azimuth) * np.cos(elevation)]
    )
    rays = camera.rays()
    cosine = (rays @ sun) / np.linalg.norm(rays, axis=-1)
    away = np.rad2deg(np.arccos(np.clip(cosine, -1, 1)))
    return (0.9 * np.exp(-((away / 3.0) ** 2)) + 0.55 * np.exp(-away / 9.0) + 0.1 * (away < 90)).astype(
        np.float32
    )


def _streaks(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Falling drops, [height, width] in 0..1."""
    layer = np.zeros((height, width), np.uint8)
    for _ in range(width * height // 900):
        x, y = rng.uniform(0, width), rng.uniform(-20, height)
        length, strength = rng.uniform(8, 26), rng.uniform(60, 255)
        end = (int(x + 0.12 * length), int(y + length))
        cv2.line(layer, (int(x), int(y)), end, strength, 1, cv2.LINE_AA)
    return cv2.GaussianBlur(layer, (3, 3), 0.6).astype(np.float32) / 255
