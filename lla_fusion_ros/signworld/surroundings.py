"""The surroundings: sky with hills and the ground with its road as textures, and how a camera sees them."""

from __future__ import annotations

import cv2
import numpy as np

from lla_fusion_ros.signworld.camera import Camera

# The panorama of everything far away spans these angles (degrees); the ground texture these metres.
PANORAMA_AZIMUTH = 80.0
PANORAMA_TOP, PANORAMA_BOTTOM = 45.0, -4.0
PANORAMA_PIXELS_PER_DEGREE = 10
GROUND_HALF_WIDTH = 30.0
GROUND_PERIOD = 36.0
GROUND_PIXELS_PER_METRE = 16
ROAD_HALF_WIDTH = 3.6

Window = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels, x1 and y1 exclusive

HAZE_DISTANCE = 260.0
_THICKEST_HAZE = 0.55  # the horizon stays a little darker than the sky
# Far rows of the image each cover metres of road and would flicker. So near rows show the texture, rows from
# 12 m on show it blurred along the road, and from 32 m on only its mean across the road.
_LEVELS = ((0.0, 0.0), (12.0, 0.5), (32.0, np.inf))  # distance, blur in metres
_OVERLAP = 0.5  # of the distance: where a level takes over from the one before


def fractal_noise(
    height: int, width: int, coarsest: int, rng: np.random.Generator, fall: float = 0.55, wrap: bool = False
) -> np.ndarray:
    """Smooth random variation about 0, standard deviation 1; `coarsest` cells along the longer side."""
    total = np.zeros((height, width), np.float32)
    cells, strength = coarsest, 1.0
    while cells < max(height, width) / 2:
        shape = (max(2, cells * height // max(height, width)), max(2, cells * width // max(height, width)))
        grid = rng.standard_normal(shape, dtype=np.float32)
        if wrap:  # the first rows once more at the end, so that the texture continues into itself
            grid[-1] = grid[0]
        total += np.float32(strength) * cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC)
        cells, strength = cells * 2, strength * fall
    return (total - total.mean()) / max(float(total.std()), 1e-6)


def make_panorama(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sky, clouds, hills and a line of woods, [height, width, 3] uint8, and the colour of the haze [3]."""
    width = int(2 * PANORAMA_AZIMUTH * PANORAMA_PIXELS_PER_DEGREE)
    height = int((PANORAMA_TOP - PANORAMA_BOTTOM) * PANORAMA_PIXELS_PER_DEGREE)
    zenith, horizon = _sky_colours(rng)
    up = np.linspace(1, 0, height, dtype=np.float32)[:, None, None] ** 0.8
    picture = horizon + (zenith - horizon) * up
    picture = np.repeat(picture, width, axis=1)
    clouds = fractal_noise(height, width, 8, rng, fall=0.6)
    cover = np.clip((clouds - rng.uniform(-0.2, 0.9)) * 0.7, 0, 0.9)[..., None] * np.clip(up * 3, 0.15, 1)
    shade = 1 - 0.12 * np.clip(fractal_noise(height, width, 16, rng), -1, 1)[..., None]
    picture += cover * (np.array([250, 250, 252], np.float32) * shade - picture)
    haze = np.clip(0.75 * horizon + 45, 0, 255)
    for base, relief, green in ((2.8, 1.6, 0.55), (1.5, 0.9, 0.25)):
        _add_ridge(picture, base, relief, haze, green, rng)
    return np.clip(picture, 0, 255).astype(np.uint8), haze.astype(np.float32)


def _sky_colours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Blue, overcast or evening."""
    palettes = (
        ((70, 128, 205), (190, 214, 234)),
        ((96, 150, 214), (214, 226, 234)),
        ((150, 164, 180), (212, 216, 220)),
        ((84, 104, 164), (240, 200, 160)),
    )
    zenith, horizon = palettes[int(rng.integers(len(palettes)))]
    return np.array(zenith, np.float32), np.array(horizon, np.float32)


def _add_ridge(
    picture: np.ndarray, base: float, relief: float, haze: np.ndarray, hazy: float, rng: np.random.Generator
) -> None:
    """A skyline of hills or woods up to about `base` degrees, paler the farther away (`hazy`)."""
    height, width = picture.shape[:2]
    profile = base + relief * fractal_noise(2, width, 12, rng, fall=0.6)[0]
    row = (PANORAMA_TOP - np.clip(profile, 0.2, 6)) * PANORAMA_PIXELS_PER_DEGREE
    mask = np.clip(np.arange(height, dtype=np.float32)[:, None] - row[None, :], 0, 1)[..., None]
    leaves = 1 + 0.16 * fractal_noise(height, width, 160, rng, fall=0.8)[..., None]
    wood = np.array([58, 84, 50], np.float32) * leaves
    picture += mask * (wood + hazy * (haze - wood) - picture)


def make_ground(rng: np.random.Generator) -> np.ndarray:
    """One period of grass, verge and road with its markings, seen from above; row 0 is nearest. uint8"""
    height = int(GROUND_PERIOD * GROUND_PIXELS_PER_METRE)
    width = int(2 * GROUND_HALF_WIDTH * GROUND_PIXELS_PER_METRE)
    x = (np.arange(width, dtype=np.float32) + 0.5) / GROUND_PIXELS_PER_METRE - GROUND_HALF_WIDTH
    z = (np.arange(height, dtype=np.float32) + 0.5) / GROUND_PIXELS_PER_METRE
    rough = fractal_noise(height, width, 24, rng, fall=0.8, wrap=True)
    fine = rng.standard_normal((height, width), dtype=np.float32)
    grass = np.array([96, 124, 58], np.float32) * rng.uniform(0.85, 1.1, 3).astype(np.float32)
    picture = grass * (1 + 0.10 * rough + 0.07 * fine)[..., None]
    gravel = np.array([150, 142, 124], np.float32) * (1 + 0.05 * rough + 0.08 * fine)[..., None]
    edge = np.abs(x)[None, :, None] + 0.15 * rough[..., None]
    picture = np.where(edge < ROAD_HALF_WIDTH + 0.9, gravel, picture)
    asphalt = np.array([98, 98, 102], np.float32) * rng.uniform(0.85, 1.15)
    tyres = 1 - 0.06 * np.exp(-(((np.abs(np.abs(x) - 1.8) - 0.75) / 0.3) ** 2))[None, :, None]
    tarmac = asphalt * tyres * (1 + 0.035 * rough + 0.045 * fine)[..., None]
    picture = np.where(np.abs(x)[None, :, None] < ROAD_HALF_WIDTH, tarmac, picture)
    line = (np.abs(np.abs(x) - (ROAD_HALF_WIDTH - 0.25)) < 0.07)[None, :] | (
        (np.abs(x) < 0.07)[None, :] & (z % 9.0 < 4.0)[:, None]
    )
    paint = np.array([226, 226, 220], np.float32) * (1 + 0.04 * rough)[..., None]
    return np.clip(np.where(line[..., None], paint, picture), 0, 255).astype(np.uint8)


class Ground:
    """The ground as one camera sees it, down to the horizon; keeps the place that each pixel looks at."""

    def __init__(self, ground: np.ndarray, haze: np.ndarray, camera: Camera) -> None:
        rays = camera.rays()
        down = np.minimum(rays[..., 1], -1e-4)
        self._x = (camera.offset[1] / -down * rays[..., 0]).astype(np.float32)
        self._z = (camera.offset[1] / -down * rays[..., 2]).astype(np.float32)
        below = (rays[..., 1] < -2e-3).all(axis=1)
        self.horizon = int(np.argmax(below)) if below.any() else camera.height  # first row of ground
        away = np.abs(camera.offset[1] / -down).min(axis=1)  # per row, metres ahead of the camera
        self._haze = (_THICKEST_HAZE * (1 - np.exp(-2 * away / HAZE_DISTANCE))).astype(np.float32)
        self._haze_colour = haze
        self._levels = [_level_texture(ground, blur) for _, blur in _LEVELS]
        starts = [start for start, _ in _LEVELS]
        self._weights = [
            np.clip((away - s) / max(_OVERLAP * s, 1e-6), 0, 1).astype(np.float32) for s in starts
        ]

    def render(self, eye: np.ndarray, window: Window) -> np.ndarray:
        """The window, all of it below the horizon, seen from `eye` (x, y, z).  [height, width, 3] uint8"""
        x0, y0, x1, y1 = window
        px, reach = np.float32(GROUND_PIXELS_PER_METRE), GROUND_HALF_WIDTH
        columns = np.clip(self._x[y0:y1, x0:x1] + np.float32(eye[0] + reach), 0.1, 2 * reach - 0.1) * px
        rows = (self._z[y0:y1, x0:x1] + np.float32(eye[2] % GROUND_PERIOD)) * px
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
        sigma = blur * GROUND_PIXELS_PER_METRE
        repeated = cv2.GaussianBlur(repeated, (1, 2 * int(3 * sigma) + 1), sigmaX=0.1, sigmaY=sigma)
    return repeated


def sample_panorama(panorama: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """What each ray sees of the panorama.  [height, width, 3] -> the same, uint8"""
    azimuth = np.rad2deg(np.arctan2(rays[..., 0], rays[..., 2]))
    elevation = np.rad2deg(np.arctan2(rays[..., 1], np.hypot(rays[..., 0], rays[..., 2])))
    px = PANORAMA_PIXELS_PER_DEGREE
    columns = ((azimuth + PANORAMA_AZIMUTH) * px).astype(np.float32)
    rows = ((PANORAMA_TOP - elevation) * px).astype(np.float32)
    # Cameras that look aside or back see the panorama once more, mirrored: it has no seam.
    return cv2.remap(panorama, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
