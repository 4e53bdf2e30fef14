"""The surroundings as textures: sky with hills, and the ground with its road."""

from __future__ import annotations

import cv2
import numpy as np

# The panorama of everything far away spans these angles (degrees); the ground texture these metres.
PANORAMA_AZIMUTH = 80.0
PANORAMA_TOP, PANORAMA_BOTTOM = 45.0, -4.0
PANORAMA_PIXELS_PER_DEGREE = 10
GROUND_HALF_WIDTH = 30.0
GROUND_PERIOD = 36.0
GROUND_PIXELS_PER_METRE = 16
ROAD_HALF_WIDTH = 3.6


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
