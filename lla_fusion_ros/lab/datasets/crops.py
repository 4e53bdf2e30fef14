"""From tracks to crops of one size, clean or under the regimes of docs/method.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.lab.datasets.plan import Plan, apply_plan
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import LENGTHS
from lla_fusion_ros.types.track_set import CropSet, Frame, TrackSet

Regime = Literal["clean", "hard", "mixed", "approach"]
APPROACH: Regime = "approach"  # for what is fitted only; results are those of the others
FITTED_REGIMES: tuple[Regime, ...] = get_args(Regime)
REGIMES = FITTED_REGIMES[:-1]

_PIXEL = 1 / 32  # lengths are stated in pixels at 32 px
_BAD_SHARE = 0.4  # of the frames of a mixed track
_STRETCH = 0.12  # of training crops, logarithm
_CAST = 0.15
_FADE = (-0.3, 0.9)
_GAMMA = 0.5  # logarithms
_SURROUNDINGS = 1.2
_FAR = 8.0  # pixels of a box where an approach begins
_CODED_QUALITY, _CODED_PIXELS, _CODED_CAST, _TILT = (40, 95), (16, 56), 0.35, 0.25


def border_of(size: int) -> int:
    """Pixels of surroundings that the regimes may move over: a quarter of the crop's side."""
    return size // 4


def cut(trackset: TrackSet, size: int, margin: float, border: int = 0) -> CropSet:
    """Cut every box, grown by `margin` of its side on each side and stretched to `size`, as the nodes do.

    Args:
        border: pixels of surroundings to keep on each side, at the scale of the crop, for `degrade` to move
            over. `border_of` suits all regimes.
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
    box_side = np.empty(len(frames), np.float32)
    for row, (index, step) in enumerate(frames):
        frame = trackset.tracks[index].frames[step]
        box = _centred(frame)
        images[row] = cut_crops(Pixels(frame.image, "rgb"), box, side, wider)[0]
        box_side[row] = np.sqrt(box[0, 2] * box[0, 3])
    return CropSet(
        images,
        track=np.array([index for index, _ in frames], np.int64),
        frame=np.array([step for _, step in frames], np.int64),
        camera=np.array([trackset.tracks[index].frames[step].camera for index, step in frames], np.int64),
        label=np.array([trackset.tracks[index].label for index, _ in frames], np.int64),
        box_side=box_side,
        border=border,
        margin=margin,
    )


def _centred(frame: Frame) -> np.ndarray:
    """The box as cx, cy, w, h.  [1, 4]"""
    x0, y0, x1, y1 = frame.box
    return np.array([[(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0]])


def degrade(crops: CropSet, regime: Regime, seed: int) -> CropSet:
    """The crops under a regime, at their final size; equal seeds give equal pixels."""
    rng = np.random.default_rng([seed, FITTED_REGIMES.index(regime) if regime in FITTED_REGIMES else 0])
    plan, side = regime_plan(regime, crops.track, rng), crops.box_side
    if regime == APPROACH:
        side = approaching_sides(crops)
        pixels = np.rint(side * (1 + 2 * crops.margin))
        plan = replace(plan, pixels=np.where((side < crops.box_side) & (pixels < crops.size), pixels, 0))
    images = apply_plan(crops.images, crops.border, plan, rng)
    return replace(crops, images=images, border=0, box_side=side)


def approaching_sides(crops: CropSet) -> np.ndarray:
    """The side of each box, had its object come from where it is _FAR pixels large at an even speed.  [crops]

    The distance shrinks evenly, so that 1/side does, down to that of the largest box of the track. No box is
    larger than it is.
    """
    _, of_crop = np.unique(crops.track, return_inverse=True)
    last, full = np.zeros(of_crop.max(initial=-1) + 1), np.zeros(of_crop.max(initial=-1) + 1)
    np.maximum.at(last, of_crop, np.minimum(crops.frame, LENGTHS[-1] - 1))
    np.maximum.at(full, of_crop, crops.box_side)
    left = 1 - crops.frame.clip(max=last[of_crop]) / np.maximum(last[of_crop], 1)
    left[last[of_crop] == 0] = 0.0  # a single image is a near one
    distance = left / _FAR + (1 - left) / np.maximum(full[of_crop], _FAR)
    return np.minimum(crops.box_side, 1 / distance).astype(np.float32)


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
    if regime == APPROACH:
        return _plan(count, rng, shift=1.0 * _PIXEL, scale=0.05)
    if regime == "mixed":
        mild = replace(
            _plan(count, rng, shift=1.0 * _PIXEL, scale=0.05, degrees=3.0), gain=rng.uniform(0.8, 1.2, count)
        )
        return _spoil(mild, rng)
    raise InputError(f"regime '{regime}' is unknown, expected one of {', '.join(FITTED_REGIMES)}")


def augmentation_plan(
    count: int,
    rng: np.random.Generator,
    clean: float = 0.4,
    hard: float = 0.3,
    faded: float = 0.0,
    relit: float = 0.0,
    coded: float = 0.0,
) -> Plan:
    """A fresh plan for training: shares of clean (slightly moved and lit) and hard crops, the rest mixed.

    All of them are stretched and tinted a little too, for signs seen askew and cameras of other colours; a
    share of them is `faded`, for signs bleached by the sun and cameras that see few colours at night; a share
    is `relit`, with other contrasts and surroundings brighter or darker than they were: in a data set with
    few tracks of a class the light around them would give the class away; a share is `coded`, as other
    cameras send it: JPEG at some resolution, in other colours and contrasts, seen from another side.
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
    if faded > 0:
        plan = replace(plan, fade=np.where(rng.random(count) < faded, rng.uniform(*_FADE, count), 0.0))
    if relit > 0:
        chosen = rng.random(count) < relit
        plan = replace(
            plan,
            surroundings=np.exp(np.where(chosen, rng.uniform(-_SURROUNDINGS, _SURROUNDINGS, count), 0.0)),
            gamma=np.exp(np.where(chosen, rng.uniform(-_GAMMA, _GAMMA, count), 0.0)),
        )
    if coded > 0:
        chosen = rng.random(count) < coded
        plan = replace(
            plan,
            tilt=np.where(chosen[:, None], rng.uniform(-_TILT, _TILT, (count, 2)), 0.0),
            gamma=np.where(chosen, np.exp(rng.uniform(-_GAMMA, _GAMMA, count)), plan.gamma),
            cast=np.where(
                chosen[:, None], np.exp(rng.uniform(-_CODED_CAST, _CODED_CAST, (count, 3))), plan.cast
            ),
            jpeg=np.where(chosen, rng.integers(*_CODED_QUALITY, count), 0),
            pixels=np.where(chosen, np.rint(np.geomspace(*_CODED_PIXELS, 32))[rng.integers(0, 32, count)], 0),
        )
    return plan


def _plan(
    count: int, rng: np.random.Generator, shift: float = 0.0, scale: float = 0.0, degrees: float = 0.0
) -> Plan:
    """Nothing but a move within the given bounds."""
    none = np.zeros(count)
    return Plan(
        surroundings=np.ones(count),
        shift=rng.uniform(-shift, shift, (count, 2)),
        scale=1 + rng.uniform(-scale, scale, count),
        stretch=np.ones(count),
        angle=np.deg2rad(rng.uniform(-degrees, degrees, count)),
        tilt=np.zeros((count, 2)),
        cover=np.full(count, np.nan),
        colour=np.zeros((count, 3)),
        blur=none,
        smear=none,
        heading=none,
        fade=none,
        gamma=np.ones(count),
        gain=np.ones(count),
        cast=np.ones((count, 3)),
        noise=none,
        jpeg=none,
        pixels=none,
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
