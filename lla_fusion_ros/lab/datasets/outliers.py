"""Synthetic outliers: objects outside the classes, made from tracks of the known classes.

The warning model is fitted on these, never on held-out classes. Most are sign-like (the pictogram of one
class in the border of another, a pictogram erased, turned, shuffled), because what looks nearly like a sign
is hard to tell from one. One operation with one set of parameters per track: it looks alike in all frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import CropSet

Array = np.ndarray
Generator = np.random.Generator
# (frames of a track, frames of a track of another class [frames, side, side, 3], the share of the side that
# the final crop takes, the track's own generator) -> frames
Operation = Callable[[Array, Array, float, Generator], Array]


def outlier_tracks(crops: CropSet, count: int, seed: int) -> CropSet:
    """`count` tracks of synthetic outliers, label -1; border and number of frames are those of the originals.

    `track` counts the outliers from 0; kind k of `OUTLIER_KINDS` made the tracks with track % kinds == k.
    """
    tracks = np.unique(crops.track)
    rows = {int(track): np.flatnonzero(crops.track == track) for track in tracks}
    label = {track: int(crops.label[first[0]]) for track, first in rows.items()}
    if len(set(label.values())) < 2:
        raise InputError("synthetic outliers need tracks of at least two classes to mix")
    reach = crops.size / crops.images.shape[1]
    operations = list(OUTLIER_KINDS.values())
    pieces, sources = [], []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        own = int(rng.choice(tracks))
        other = int(rng.choice([track for track in tracks if label[int(track)] != label[own]]))
        partner = crops.images[np.resize(rows[other], len(rows[own]))]
        pieces.append(operations[number % len(operations)](crops.images[rows[own]], partner, reach, rng))
        sources.append(rows[own])
    if not pieces:
        return crops.take(slice(0, 0))
    result = crops.take(np.concatenate(sources))
    return replace(
        result,
        images=np.concatenate(pieces),
        track=np.repeat(np.arange(count), [len(source) for source in sources]),
        label=np.full(len(result), -1),
    )


def _disc(side: int, radius: float, centre: tuple[float, float] = (0.0, 0.0)) -> Array:
    """A soft disc around the middle; radius 1 touches the edges.  [side, side, 1] float32 in 0..1"""
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    distance = np.hypot(axis[None, :] - centre[0], axis[:, None] - centre[1])
    return np.clip((radius - distance) * side / 4 + 0.5, 0, 1)[..., None].astype(np.float32)


def _blend(inside: Array, outside: Array, mask: Array | np.float32) -> Array:
    return np.rint(outside + mask * (inside.astype(np.float32) - outside)).astype(np.uint8)


def _pictogram(frames: Array, reach: float, rng: Generator) -> Array:
    """Where the pictogram of a sign is.  [side, side, 1]"""
    return _disc(frames.shape[1], reach * rng.uniform(0.5, 0.68))


def _each(frames: Array, change: Callable[[Array], Array]) -> Array:
    return np.stack([change(frame) for frame in frames])


def swap_pictogram(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """The inside of another class within this class's border."""
    return _blend(others, frames, _pictogram(frames, reach, rng))


def erase_pictogram(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """The inside painted over with the lighter or the darker of the two colours in it."""
    middle_part = _disc(frames.shape[1], 0.5 * reach)[..., 0] > 0.5
    inside = frames[:, middle_part].astype(np.float32)  # [frames, pixels, 3]
    brightness = inside.mean(axis=2)
    middle = np.median(brightness, axis=1, keepdims=True)
    chosen = brightness >= middle if rng.random() < 0.6 else brightness <= middle
    paint = np.stack([np.median(pixels[mask], axis=0) for pixels, mask in zip(inside, chosen, strict=True)])
    return _blend(paint[:, None, None], frames, _pictogram(frames, reach, rng))


def turn_pictogram(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """The inside turned by 50 to 310 degrees."""
    centre = (frames.shape[1] - 1) / 2
    matrix = cv2.getRotationMatrix2D((centre, centre), rng.uniform(50, 310), 1.0)
    size = frames.shape[1:3]
    turned = _each(frames, lambda f: cv2.warpAffine(f, matrix, size, borderMode=cv2.BORDER_REPLICATE))
    return _blend(turned, frames, _pictogram(frames, reach, rng))


def flip(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """Upside down, the whole sign or the inside only."""
    mask: Array | np.float32 = np.float32(1.0) if rng.random() < 0.5 else _pictogram(frames, reach, rng)
    return _blend(frames[:, ::-1], frames, mask)


def shuffle_patches(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """The inside cut in 2x2 or 3x3 pieces, which change places."""
    parts = int(rng.integers(2, 4))
    side = frames.shape[1]
    piece = max(1, int(side * reach * rng.uniform(0.6, 0.8)) // parts)
    start = (side - parts * piece) // 2
    order = np.roll(rng.permutation(parts * parts), 1)
    result = frames.copy()
    for place, source in enumerate(order):
        y, x = (start + piece * int(i) for i in divmod(place, parts))
        from_y, from_x = (start + piece * int(i) for i in divmod(int(source), parts))
        result[:, y : y + piece, x : x + piece] = frames[:, from_y : from_y + piece, from_x : from_x + piece]
    return result


def shift_hue(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """Another hue for every colour, a third of the circle or more away."""
    shift = int(rng.integers(45, 135))  # OpenCV counts hues to 180

    def recolour(frame: Array) -> Array:
        hsv = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0].astype(np.int32) + shift) % 180
        hsv[..., 1] = np.clip(hsv[..., 1].astype(np.float32) * 1.3, 0, 255).astype(np.uint8)
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)

    return _each(frames, recolour)


def invert_pictogram(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """Light for dark inside, about the mean brightness."""
    mean = frames.mean(axis=(1, 2), keepdims=True)
    return _blend(np.clip(2 * mean - frames, 0, 255), frames, _pictogram(frames, reach, rng))


def mix(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """Two classes on top of each other, nearly equal parts."""
    return _blend(others, frames, np.float32(rng.uniform(0.4, 0.6)))


def halves(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """One half of each of two classes, along a line of any direction."""
    axis = np.linspace(-1, 1, frames.shape[1], dtype=np.float32)
    direction = rng.uniform(0, 2 * np.pi)
    along = axis[None, :] * np.cos(direction) + axis[:, None] * np.sin(direction)
    return _blend(others, frames, (along > 0).astype(np.float32)[..., None])


def paste_patch(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """A smaller copy of another class stuck onto this one, off the middle."""
    side = frames.shape[1]
    small = max(2, int(side * reach * rng.uniform(0.4, 0.6)))
    y, x = (int(side * 0.5 - small * rng.uniform(0.2, 0.8)) for _ in range(2))
    result = frames.copy()
    result[:, y : y + small, x : x + small] = _each(
        others, lambda f: cv2.resize(f, (small, small), interpolation=cv2.INTER_AREA)
    )
    return result


def draw_board(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """A board of random shape and colours with marks like text, in this track's surroundings and light."""
    side = frames.shape[1]
    board, mask = _random_board(side, reach, rng)
    light = np.clip(np.percentile(frames, 90, axis=(1, 2)), 40, 255)[:, None, None] / 255
    return _blend(board * light, frames, mask)


def _random_board(side: int, reach: float, rng: Generator) -> tuple[Array, Array]:
    """Colours [side, side, 3] float32 and mask [side, side, 1], drawn four times larger for smooth edges."""
    big = 4 * side
    plate, face, ink = rng.uniform(20, 255, (3, 3))
    corners = int(rng.integers(3, 9))
    turn = rng.uniform(0, 2 * np.pi) + np.arange(corners) * 2 * np.pi / corners
    stretch = rng.uniform(0.6, 1.0, 2)
    outline = (
        np.stack([np.cos(turn), np.sin(turn)], axis=1) * stretch * rng.uniform(0.28, 0.36) * big + big / 2
    )
    canvas = np.empty((big, big, 3), np.float32)
    canvas[:] = plate
    inner = (outline - big / 2) * rng.uniform(0.6, 0.85) + big / 2
    cv2.fillPoly(canvas, [np.rint(inner).astype(np.int32)], face.tolist())
    for _ in range(int(rng.integers(2, 8))):
        start = big / 2 + rng.uniform(-0.25, 0.25, 2) * big * reach
        end = start + rng.uniform(-0.2, 0.2, 2) * big * reach
        width = int(rng.integers(big // 40 + 1, big // 14 + 2))
        cv2.line(canvas, tuple(map(int, start)), tuple(map(int, end)), ink.tolist(), width)
    mask = np.zeros((big, big), np.float32)
    cv2.fillPoly(mask, [np.rint(outline).astype(np.int32)], 1.0)
    small = (side, side)
    smooth_mask = cv2.resize(mask, small, interpolation=cv2.INTER_AREA)[..., None]
    return cv2.resize(canvas, small, interpolation=cv2.INTER_AREA), smooth_mask


def texture(frames: Array, others: Array, reach: float, rng: Generator) -> Array:
    """No sign at all: blotches in the colours of the surroundings, from coarse to fine."""
    side = frames.shape[1]
    blotches = np.zeros((side, side, 3), np.float32)
    for cells in (2, 4, 8, 16):
        shades = rng.normal(0, 1, (cells, cells, 1)) + rng.normal(0, 0.3, (cells, cells, 3))
        layer = (shades / np.sqrt(cells)).astype(np.float32)
        blotches += cv2.resize(layer, (side, side), interpolation=cv2.INTER_CUBIC)
    mean = frames.mean(axis=(1, 2), keepdims=True)
    spread = frames.std(axis=(1, 2), keepdims=True)
    return np.clip(mean + 1.5 * spread * blotches, 0, 255).astype(np.uint8)


_FIRST = (swap_pictogram, erase_pictogram, turn_pictogram, flip, shuffle_patches, shift_hue)
_LAST = (invert_pictogram, mix, halves, paste_patch, draw_board, texture)
OUTLIER_KINDS: dict[str, Operation] = {each.__name__: each for each in (*_FIRST, *_LAST)}
