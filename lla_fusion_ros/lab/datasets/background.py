"""Tracks of what is no object of any class: what a detector delivers when it errs.

Scenery of the sign world, textures, gradients and edges are always at hand; a folder of natural images is
better still. One box follows one place of a picture while the vehicle comes nearer, as with a false detection
that lasts. The warning model is fitted against these; they have label -1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.lab.datasets.images import IMAGE_EXTENSIONS, read_image
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

_PICTURE = 192  # side of a drawn picture
_LOOKS = 8  # countries of the sign world; each takes a while to draw
_CONTEXT = 0.4  # of the box, kept around it


def backgrounds(count: int, frames: int, seed: int, folder: str | Path | None) -> list[TrackSet]:
    """`count` drawn tracks, and as many of natural images where a folder of them is named."""
    drawn = background_tracks(count, frames, seed)
    return [drawn] if not folder else [drawn, background_tracks(count, frames, seed, folder)]


def background_tracks(
    count: int, frames: int = 8, seed: int = 0, folder: str | Path | None = None
) -> TrackSet:
    """`count` tracks: drawn ones, or places in the images below `folder`."""
    kinds = list(BACKGROUND_KINDS.values())
    files = [] if not folder else _files(Path(folder))
    tracks = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        if files:
            picture = read_image(files[int(rng.integers(len(files)))])
        else:
            picture = kinds[number % len(kinds)](rng)
        tracks.append(Track(f"background/{number:05d}", -1, _approach(picture, frames, rng)))
    told = f"background {count} {frames} {seed} {len(files)}"
    return TrackSet("background", (), tuple(tracks), hashlib.sha256(told.encode()).hexdigest())


def _files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_EXTENSIONS)
    if not found:
        raise DatasetError(f"no images below '{folder}' ({', '.join(sorted(IMAGE_EXTENSIONS))})")
    return found


def _approach(picture: np.ndarray, frames: int, rng: np.random.Generator) -> tuple[Frame, ...]:
    """A box on one place of the picture that grows in pixels from frame to frame, as detectors jitter it."""
    height, width = picture.shape[:2]
    side = min(height, width) * np.exp(rng.uniform(np.log(0.15), np.log(0.9)))
    centre = rng.uniform(side / 2, np.array([width, height]) - side / 2)
    lean = np.exp(rng.uniform(-0.15, 0.15))
    aspect = np.array([lean, 1 / lean])
    first, last = rng.uniform(12, 30), rng.uniform(30, 60)
    made = []
    for step, pixels in enumerate(np.geomspace(first, last, frames)):
        middle = centre + side * rng.normal(0, 0.03, 2)
        half = side / 2 * aspect * np.exp(rng.normal(0, 0.04))
        x0, y0 = np.maximum(middle - half * (1 + 2 * _CONTEXT), 0).astype(int)
        x1, y1 = np.ceil(np.minimum(middle + half * (1 + 2 * _CONTEXT), (width, height))).astype(int)
        window = picture[y0:y1, x0:x1]
        zoom = pixels / side
        size = max(2, round(window.shape[1] * zoom)), max(2, round(window.shape[0] * zoom))
        image = cv2.resize(window, size, interpolation=cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR)
        scale = np.array(size) / (window.shape[1], window.shape[0])
        low, high = (middle - half - (x0, y0)) * scale, (middle + half - (x0, y0)) * scale
        made.append(Frame(image, (*low.tolist(), *high.tolist()), time=step / 10))
    return tuple(made)


def _scenery(rng: np.random.Generator) -> np.ndarray:
    """Sky, hills, ground, and trees, houses or vans before them."""
    from lla_fusion_ros.signworld.scene import make_look  # the sign world's tracks are a data set, too

    look = make_look(2000 + int(rng.integers(_LOOKS)))
    base = look.panorama if rng.random() < 0.6 else look.ground
    y, x = (int(rng.integers(length - _PICTURE)) for length in base.shape[:2])
    picture = base[y : y + _PICTURE, x : x + _PICTURE].copy()
    for _ in range(int(rng.integers(0, 4))):
        levels = look.pictures[list(look.pictures)[int(rng.integers(len(look.pictures)))]]
        thing = levels[0].astype(np.float32)
        height, width = (min(length, _PICTURE) for length in thing.shape[:2])
        top, left = int(rng.integers(_PICTURE - height + 1)), int(rng.integers(_PICTURE - width + 1))
        place = picture[top : top + height, left : left + width]
        shown = thing[:height, :width]
        place[:] = np.clip(shown[..., :3] + place * (1 - shown[..., 3:] / 255), 0, 255).astype(np.uint8)
    return picture


def _texture(rng: np.random.Generator) -> np.ndarray:
    """Leaves, gravel, walls: noise of some scale in two or three colours."""
    from lla_fusion_ros.signworld.surroundings import fractal_noise

    coarse = int(rng.integers(3, 24))
    shape = fractal_noise(_PICTURE, _PICTURE, coarse, rng, fall=rng.uniform(0.3, 0.9))
    colour = rng.uniform(20, 235, (3, 3))
    sharp = np.clip(shape * np.exp(rng.uniform(-0.7, 2.5)), -1, 1)[..., None]
    picture = colour[0] + (colour[1] - colour[0]) * (sharp + 1) / 2
    if rng.random() < 0.5:
        other = fractal_noise(_PICTURE, _PICTURE, 2 * coarse, rng)[..., None]
        picture += rng.uniform(0.1, 0.5) * np.clip(other, -1, 1) * (colour[2] - picture)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _stripes(rng: np.random.Generator) -> np.ndarray:
    """Fences, tiles, shutters, windows: repeated lines in one or two directions."""
    axis = np.arange(_PICTURE, dtype=np.float32)
    turn = rng.uniform(0, np.pi)
    along = axis[None, :] * np.cos(turn) + axis[:, None] * np.sin(turn)
    wave = np.sin(2 * np.pi * along / rng.uniform(6, 60))
    if rng.random() < 0.5:
        across = axis[:, None] * np.cos(turn) - axis[None, :] * np.sin(turn)
        wave = wave * np.sin(2 * np.pi * across / rng.uniform(6, 60))
    one, two = rng.uniform(20, 235, (2, 3))
    share = np.clip(wave * np.exp(rng.uniform(0, 2.5)), -1, 1)[..., None]
    return np.clip(one + (two - one) * (share + 1) / 2, 0, 255).astype(np.uint8)


def _gradient(rng: np.random.Generator) -> np.ndarray:
    """Sky, a car's paint, a shadow: smooth from one colour to another, with hardly any grain."""
    axis = np.linspace(-1, 1, _PICTURE, dtype=np.float32)
    turn = rng.uniform(0, 2 * np.pi)
    along = axis[None, :] * np.cos(turn) + axis[:, None] * np.sin(turn)
    if rng.random() < 0.3:
        place = rng.uniform(-1, 1, 2)
        along = np.hypot(axis[None, :] - place[0], axis[:, None] - place[1]) - 1
    base = rng.uniform(20, 235, 3)
    change = rng.normal(0, rng.uniform(5, 80)) + rng.normal(0, 15, 3)
    grain = rng.uniform(0, 4) * rng.standard_normal((_PICTURE, _PICTURE, 1))
    return np.clip(base + along[..., None] * change + grain, 0, 255).astype(np.uint8)


def _edges(rng: np.random.Generator) -> np.ndarray:
    """Borders of other objects: posts, corners, discs and boards that a box cuts through."""
    from lla_fusion_ros.signworld.surroundings import fractal_noise

    picture = np.empty((_PICTURE, _PICTURE, 3), np.float32)
    picture[:] = rng.uniform(20, 235, 3)
    for _ in range(int(rng.integers(1, 6))):
        colour = rng.uniform(10, 250, 3).tolist()
        middle = rng.uniform(0, _PICTURE, 2)
        if rng.random() < 0.3:
            cv2.circle(
                picture, middle.astype(int).tolist(), int(rng.uniform(10, 90)), colour, -1, cv2.LINE_AA
            )
        else:
            size, turn = rng.uniform(6, 160, 2), float(rng.uniform(0, 180))
            corners = cv2.boxPoints((middle.tolist(), size.tolist(), turn if rng.random() < 0.5 else 0.0))
            cv2.fillPoly(picture, [np.rint(corners).astype(np.int32)], colour, cv2.LINE_AA)
    picture *= 1 + 0.12 * fractal_noise(_PICTURE, _PICTURE, 6, rng)[..., None]
    return cv2.GaussianBlur(np.clip(picture, 0, 255).astype(np.uint8), (0, 0), rng.uniform(0.3, 2.0))


BACKGROUND_KINDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "scenery": _scenery,
    "texture": _texture,
    "stripes": _stripes,
    "gradient": _gradient,
    "edges": _edges,
}
