"""The three regimes of METHOD section 8 (clean, hard, mixed) on crops, and training augmentation from them.

A `Plan` says what happens to each crop; lengths are fractions of the crop's side, so that a regime means the
same at every crop size. `degrade` puts whole tracks under a regime; `augmentation_plan` draws fresh plans.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

import cv2
import numpy as np

from lla_fusion_ros.datasets.types import CropSet
from lla_fusion_ros.errors import InputError

Regime = Literal["clean", "hard", "mixed"]
REGIMES: tuple[Regime, ...] = get_args(Regime)

_PIXEL = 1 / 32  # the protocol states lengths in pixels at 32 px
_BAD_SHARE = 0.4  # of the frames of a mixed track
_STRETCH = 0.12  # of training crops, logarithm
_CAST = 0.15
_FADE = (-0.3, 0.9)
_GRAIN_POOL = 1 << 20  # normal numbers the crops share; drawing all anew took 60% of the time


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to each crop, in this order: move, cover, blur, fade, gain, noise.

    Attributes:
        shift: of the crop over the image, fractions of its side.   [crops, 2]
        scale: field of view, 1 is unchanged.                       [crops]
        stretch: width of the field of view over its height.        [crops]
        angle: rotation in radians.                                 [crops]
        cover: direction of the covered half in radians, NaN: none. [crops]
        colour: of the cover, 0 to 255.                             [crops, 3]
        blur: sigma, fraction of the side.                          [crops]
        smear: length of the motion blur, fraction of the side.     [crops]
        heading: direction of the motion in radians.                [crops]
        fade: share of its colour a crop has lost; below 0 gained.  [crops]
        gain: brightness factor.                                    [crops]
        cast: brightness factor of each colour.                     [crops, 3]
        noise: sigma, 1 is full scale.                              [crops]
    """

    shift: np.ndarray
    scale: np.ndarray
    stretch: np.ndarray
    angle: np.ndarray
    cover: np.ndarray
    colour: np.ndarray
    blur: np.ndarray
    smear: np.ndarray
    heading: np.ndarray
    fade: np.ndarray
    gain: np.ndarray
    cast: np.ndarray
    noise: np.ndarray

    def __len__(self) -> int:
        return len(self.scale)

    def where(self, mask: np.ndarray, other: Plan) -> Plan:
        """This plan where `mask` [crops] holds, the other one elsewhere."""
        chosen = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            chosen[field.name] = np.where(mask[:, None] if mine.ndim == 2 else mask, mine, theirs)
        return Plan(**chosen)


def degrade(crops: CropSet, regime: Regime, seed: int) -> CropSet:
    """The crops under a regime, at their final size; equal seeds give equal pixels."""
    rng = np.random.default_rng([seed, REGIMES.index(regime) if regime in REGIMES else 0])
    plan = regime_plan(regime, crops.track, rng)
    return replace(crops, images=apply_plan(crops.images, crops.border, plan, rng), border=0)


def regime_plan(regime: Regime, track: np.ndarray, rng: np.random.Generator) -> Plan:
    """Draw what a regime does to each crop; `track` [crops] says which crops share their per-track part."""
    count = len(track)
    if regime == "clean":
        return _plan(count, rng)
    if regime == "hard":
        tracks, of_crop = np.unique(track, return_inverse=True)
        return replace(
            _plan(count, rng, shift=2.5 * _PIXEL, scale=0.12, degrees=8.0),
            blur=rng.uniform(0.7, 1.5, len(tracks))[of_crop] * _PIXEL,
            gain=rng.uniform(0.15, 0.5, len(tracks))[of_crop] * rng.uniform(0.8, 1.2, count),
            noise=rng.uniform(0.015, 0.05, count),
        )
    if regime == "mixed":
        mild = replace(
            _plan(count, rng, shift=1.0 * _PIXEL, scale=0.05, degrees=3.0), gain=rng.uniform(0.8, 1.2, count)
        )
        return _spoil(mild, rng)
    raise InputError(f"regime '{regime}' is unknown, expected one of {', '.join(REGIMES)}")


def augmentation_plan(
    count: int, rng: np.random.Generator, clean: float = 0.4, hard: float = 0.3, faded: float = 0.0
) -> Plan:
    """A fresh plan for training: shares of clean (slightly moved and lit) and hard crops, the rest mixed.

    All of them are stretched and tinted a little too, for signs seen askew and cameras of other colours; a
    share of them is `faded`, for signs bleached by the sun and cameras that see few colours at night.
    """
    if not (clean >= 0 and hard >= 0 and clean + hard <= 1):
        raise InputError(f"shares clean={clean}, hard={hard} must be >= 0 and sum to at most 1")
    alone = np.arange(count)
    draw = rng.random(count)
    gentle = replace(
        _plan(count, rng, shift=1.5 * _PIXEL, scale=0.08, degrees=6.0), gain=rng.uniform(0.6, 1.3, count)
    )
    rest = regime_plan("hard", alone, rng).where(draw < clean + hard, regime_plan("mixed", alone, rng))
    plan = replace(
        gentle.where(draw < clean, rest),
        stretch=np.exp(rng.uniform(-_STRETCH, _STRETCH, count)),
        cast=np.exp(rng.uniform(-_CAST, _CAST, (count, 3))),
    )
    if faded == 0:
        return plan
    return replace(plan, fade=np.where(rng.random(count) < faded, rng.uniform(*_FADE, count), 0.0))


def _plan(
    count: int, rng: np.random.Generator, shift: float = 0.0, scale: float = 0.0, degrees: float = 0.0
) -> Plan:
    """Nothing but a move within the given bounds."""
    none = np.zeros(count)
    return Plan(
        shift=rng.uniform(-shift, shift, (count, 2)),
        scale=1 + rng.uniform(-scale, scale, count),
        stretch=np.ones(count),
        angle=np.deg2rad(rng.uniform(-degrees, degrees, count)),
        cover=np.full(count, np.nan),
        colour=np.zeros((count, 3)),
        blur=none,
        smear=none,
        heading=none,
        fade=none,
        gain=np.ones(count),
        cast=np.ones((count, 3)),
        noise=none,
    )


def _spoil(plan: Plan, rng: np.random.Generator) -> Plan:
    """Make 40% of the frames useless: half occluded, strongly motion-blurred, or off target."""
    count = len(plan)
    how = np.where(rng.random(count) < _BAD_SHARE, rng.integers(0, 3, count), -1)
    direction = rng.uniform(0, 2 * np.pi, count)
    away = rng.uniform(0.4, 0.6, count)[:, None] * np.stack([np.cos(direction), np.sin(direction)], axis=1)
    grey = rng.uniform(20, 200, (count, 1))  # leaves, posts, other vehicles: mostly dull colours
    return replace(
        plan,
        cover=np.where(how == 0, direction, np.nan),
        colour=np.clip(grey + rng.normal(0, 14, (count, 3)), 0, 255),
        smear=np.where(how == 1, rng.uniform(8, 14, count) * _PIXEL, 0.0),
        heading=direction,
        shift=np.where((how == 2)[:, None], plan.shift + away, plan.shift),
    )


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
        result[row] = crop
    return result


def _optics(image: np.ndarray, side: int, border: int, plan: Plan, row: int) -> np.ndarray:
    """Everything that happens before the light reaches the sensor, for one crop."""
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
    return crop


def _move(image: np.ndarray, side: int, border: int, plan: Plan, row: int) -> np.ndarray:
    dx, dy = plan.shift[row] * side
    scale, angle, stretch = plan.scale[row], plan.angle[row], np.sqrt(plan.stretch[row])
    if dx == dy == angle == 0 and scale == stretch == 1:  # untouched crops stay exact
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


def _sensor(crop: np.ndarray, gain: np.ndarray, noise: float, grain: np.ndarray) -> np.ndarray:
    """Gain of each colour [3], then noise; `grain` is standard normal, of the crop's shape."""
    light = crop * gain
    if noise > 0:
        light += grain * np.float32(255 * noise)
    np.clip(light, 0, 255, out=light)
    return np.rint(light, out=light).astype(np.uint8)
