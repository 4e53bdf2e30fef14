"""What happens to each crop (a `Plan`), and carrying it out on the pixels.

Lengths are fractions of the crop's side, so that a plan means the same at every crop size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import cv2
import numpy as np

from lla_fusion_ros.types.errors import InputError

# Distances from the middle, as shares of a crop's side: boxes are grown by a tenth on each side.
_OBJECT_ENDS, _SURROUNDINGS_BEGIN = 0.42, 0.5
_LEVELS = np.arange(256) / 255
_GRAIN_POOL = 1 << 20  # normal numbers the crops share: fresh ones would take most of the time


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to each crop, in this order.

    Surroundings, move, cover, blur, fade, gamma, gain, noise, pixels, code.

    Attributes:
        surroundings: brightness factor of what is around the object, 1 is unchanged. [crops]
        shift: of the crop over the image, fractions of its side.   [crops, 2]
        scale: field of view, 1 is unchanged.                       [crops]
        stretch: width of the field of view over its height.        [crops]
        angle: rotation in radians.                                 [crops]
        tilt: perspective: how much larger one side looks, 0: none. [crops, 2]
        cover: direction of the covered half in radians, NaN: none. [crops]
        colour: of the cover, 0 to 255.                             [crops, 3]
        blur: sigma, fraction of the side.                          [crops]
        smear: length of the motion blur, fraction of the side.     [crops]
        heading: direction of the motion in radians.                [crops]
        fade: share of its colour a crop has lost; below 0 gained.  [crops]
        gamma: exponent of the brightness, 1 is unchanged.          [crops]
        gain: brightness factor.                                    [crops]
        cast: brightness factor of each colour.                     [crops, 3]
        noise: sigma, 1 is full scale.                              [crops]
        jpeg: quality of the code, 0: none.                         [crops]
        pixels: side that a camera saw the crop with, 0: as it is.  [crops]
    """

    surroundings: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    stretch: np.ndarray
    angle: np.ndarray
    tilt: np.ndarray
    cover: np.ndarray
    colour: np.ndarray
    blur: np.ndarray
    smear: np.ndarray
    heading: np.ndarray
    fade: np.ndarray
    gamma: np.ndarray
    gain: np.ndarray
    cast: np.ndarray
    noise: np.ndarray
    jpeg: np.ndarray
    pixels: np.ndarray

    def __len__(self) -> int:
        return len(self.scale)

    def where(self, mask: np.ndarray, other: Plan) -> Plan:
        """This plan where `mask` [crops] holds, the other one elsewhere."""
        chosen = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            chosen[field.name] = np.where(mask[:, None] if mine.ndim == 2 else mask, mine, theirs)
        return Plan(**chosen)


def apply_plan(images: np.ndarray, border: int, plan: Plan, rng: np.random.Generator) -> np.ndarray:
    """Carry a plan out: [crops, side + 2 border, side + 2 border, 3] to [crops, side, side, 3], uint8 RGB.

    Pixels beyond the border repeat the edge. `rng` draws the noise.
    """
    side = images.shape[1] - 2 * border
    if side < 1 or len(images) != len(plan):
        raise InputError(
            f"images {images.shape} do not fit a border of {border} and a plan for {len(plan)} crops"
        )
    grain = rng.standard_normal(_GRAIN_POOL + side * side * 3, dtype=np.float32)
    offsets = rng.integers(0, _GRAIN_POOL, len(images))
    result = np.empty((len(images), side, side, 3), np.uint8)
    for row, image in enumerate(images):
        crop = _optics(image, side, border, plan, row)
        gain, noise = (plan.gain[row] * plan.cast[row]).astype(np.float32), float(plan.noise[row])
        if (gain != 1).any() or noise > 0:
            start = offsets[row]
            crop = _sensor(crop, gain, noise, grain[start : start + crop.size].reshape(crop.shape))
        if plan.pixels[row] > 0:
            crop = _seen(crop, int(plan.pixels[row]), int(plan.jpeg[row]))
        result[row] = crop
    return result


def _optics(image: np.ndarray, side: int, border: int, plan: Plan, row: int) -> np.ndarray:
    """Everything that happens before the light reaches the sensor, for one crop."""
    if plan.surroundings[row] != 1:
        around = _around(len(image), side) * np.float32(plan.surroundings[row] - 1)
        image = np.clip(image * (1 + around), 0, 255).astype(np.uint8)
    crop = _move(image, side, border, plan, row)
    if not np.isnan(plan.cover[row]):
        crop = _cover(crop, float(plan.cover[row]), plan.colour[row])
    if plan.smear[row] > 0:
        kernel = _streak(plan.smear[row] * side, float(plan.heading[row]))
        crop = cv2.filter2D(crop, -1, kernel, borderType=cv2.BORDER_REPLICATE)
    if plan.blur[row] > 0:
        sigma = plan.blur[row] * side
        width = 2 * int(np.ceil(2.5 * sigma)) + 1
        crop = cv2.GaussianBlur(crop, (width, width), sigma, borderType=cv2.BORDER_REPLICATE)
    if plan.fade[row] != 0:
        share = float(plan.fade[row])
        grey = cv2.cvtColor(cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
        crop = cv2.addWeighted(crop, 1 - share, grey, share, 0)
    if plan.gamma[row] != 1:
        crop = cv2.LUT(crop, np.rint(255 * _LEVELS ** plan.gamma[row]).astype(np.uint8))
    return crop


@lru_cache(maxsize=8)
def _around(length: int, side: int) -> np.ndarray:
    """0 where the object is, 1 around it, for an image with a crop of `side` in its middle.  [l, l, 1]"""
    axis = (np.arange(length, dtype=np.float32) - (length - 1) / 2) / side
    distance = np.hypot(axis[:, None], axis[None, :])
    share = (distance - _OBJECT_ENDS) / (_SURROUNDINGS_BEGIN - _OBJECT_ENDS)
    return np.clip(share, 0, 1)[..., None]


def _move(image: np.ndarray, side: int, border: int, plan: Plan, row: int) -> np.ndarray:
    dx, dy = plan.shift[row] * side
    scale, angle, stretch = plan.scale[row], plan.angle[row], np.sqrt(plan.stretch[row])
    tilt = plan.tilt[row] / side
    if dx == dy == angle == 0 and scale == stretch == 1 and not tilt.any():  # untouched crops stay exact
        return image[border : border + side, border : border + side]
    centre = (side - 1) / 2
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    # From a pixel of the crop to the place in the image it is taken from.
    matrix = np.array(
        [
            [cos, -sin, border + dx + centre - cos * centre + sin * centre],
            [sin, cos, border + dy + centre - sin * centre - cos * centre],
        ]
    )
    if stretch != 1:  # about the middle of the image
        factors = np.array([stretch, 1 / stretch])
        matrix *= factors[:, None]
        matrix[:, 2] += (border + centre) * (1 - factors)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    if tilt.any():  # about the middle of the crop
        lean = np.array([[1, 0, 0], [0, 1, 0], [*tilt, 1 - centre * tilt.sum()]])
        lean[:2, :] += centre * np.array([*tilt, -centre * tilt.sum()])
        whole = np.vstack([matrix, [0, 0, 1]]) @ lean
        return cv2.warpPerspective(image, whole, (side, side), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return cv2.warpAffine(image, matrix, (side, side), flags=flags, borderMode=cv2.BORDER_REPLICATE)


def _cover(crop: np.ndarray, direction: float, colour: np.ndarray) -> np.ndarray:
    """One half hidden by a dull surface with a shade of its own."""
    axis = np.linspace(-1, 1, len(crop), dtype=np.float32)
    along = axis[None, :] * np.float32(np.cos(direction)) + axis[:, None] * np.float32(np.sin(direction))
    shade = np.clip(colour * (1 + 0.25 * along[..., None]), 0, 255).astype(np.uint8)
    return np.where(along[..., None] > 0, shade, crop)


def _streak(length: float, heading: float) -> np.ndarray:
    """A line of `length` pixels as a normalised kernel."""
    half = int(np.ceil(length / 2))
    kernel = np.zeros((2 * half + 1, 2 * half + 1), np.float32)
    for step in np.linspace(-length / 2, length / 2, 4 * half + 1):
        kernel[int(round(half + step * np.sin(heading))), int(round(half + step * np.cos(heading)))] += 1
    return kernel / kernel.sum()


def _seen(crop: np.ndarray, pixels: int, quality: int) -> np.ndarray:
    """As a camera sends it that saw `pixels` across: JPEG with half the colour resolution, if any."""
    small = cv2.resize(crop, (pixels, pixels), interpolation=cv2.INTER_AREA)
    if quality > 0:
        coded = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        small = np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR))[..., ::-1]
    return cv2.resize(small, crop.shape[1::-1], interpolation=cv2.INTER_LINEAR)


def _sensor(crop: np.ndarray, gain: np.ndarray, noise: float, grain: np.ndarray) -> np.ndarray:
    """Gain of each colour [3], then noise; `grain` is standard normal, of the crop's shape."""
    light = crop * gain
    if noise > 0:
        light += grain * np.float32(255 * noise)
    np.clip(light, 0, 255, out=light)
    return np.rint(light, out=light).astype(np.uint8)
