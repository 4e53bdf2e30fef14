"""Tracks for training: the crops a drive would give, without rendering whole images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np

from lla_fusion_ros.signworld.camera import Conditions, Optics, through_jpeg
from lla_fusion_ros.signworld.drive import LANE, MOST_HIDDEN
from lla_fusion_ros.signworld.drive_settings import TWO_CAMERAS
from lla_fusion_ros.signworld.render import Renderer
from lla_fusion_ros.signworld.scene import (
    Prop,
    RoadsideObject,
    make_look,
    occluder,
    place_object,
    scatter_props,
)
from lla_fusion_ros.signworld.signs import CLASS_NAMES, LIGHT_NAMES, OUTSIDE_KINDS
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

# Raised whenever the same options give other images: it names the data where bundles record it.
RENDERING = 2
_LOOKS = 64  # countries that tracks are spread over; with few, a new one looks like an unknown object
_CONTEXT = 0.6  # of the box, kept on each side of it
_SPEED = 9.0
_START = (36.0, 62.0)  # metres: where trackers begin to see a sign, from the roof camera to the sharpest one
_PACE = (0.45, 1.6)  # metres between views: from two cameras at 10 Hz to one that misses frames
_BAD_WEATHER = 0.35  # of the tracks
# Most cameras compress. Of a sign of twelve pixels JPEG leaves six of colour: networks and warnings that know
# raw images only take many small signs for unknown objects.
_COMPRESSED = 0.8  # of the tracks
_JPEG_QUALITY = (80, 97)


def load_signworld(
    tracks: int = 680,
    outside: int = 0,
    frames: int = 50,
    seed: int = 0,
    occluded: float = 0.3,
    progress: Callable[[int, int], None] | None = None,
) -> TrackSet:
    """Render `tracks` tracks of the known classes (equally often) and `outside` ones of other objects.

    A track has up to `frames` images, by turns of the two cameras, at the pace of a drive: most begin far
    away, and not all come near. `occluded` of the objects have a van or a bush before them; as in a drive,
    what is mostly hidden has no box. Light and weather vary from a clear day to dusk and rain; most
    tracks come from compressed images. A traffic light keeps its state all along a track.
    """
    if tracks < 0 or outside < 0 or frames < 1 or not 0 <= occluded <= 1:
        raise InputError(
            f"tracks={tracks} and outside={outside} must be >= 0, frames={frames} >= 1, "
            f"occluded={occluded} between 0 and 1"
        )
    known = [(CLASS_NAMES[i % len(CLASS_NAMES)], i) for i in range(tracks)]
    other = [(OUTSIDE_KINDS[i % len(OUTSIDE_KINDS)], tracks + i) for i in range(outside)]
    wanted = sorted(known + other, key=lambda each: _look_of(each[1], seed))  # one country after the other
    by_number: dict[int, Track] = {}
    for name, number in wanted:
        by_number[number] = _render_track(name, number, frames, seed, occluded)
        if progress is not None:
            progress(len(by_number), len(wanted))
    rendered = tuple(by_number[number] for number in range(len(wanted)))
    digest = _digest(tracks, outside, frames, seed, float(occluded))
    return TrackSet("signworld", CLASS_NAMES, rendered, digest, changing=LIGHT_NAMES)


def _digest(*options: float) -> str:
    """Names the images by what they are rendered from: their last bits differ between processors."""
    told = json.dumps(["signworld", RENDERING, CLASS_NAMES, options])
    return hashlib.sha256(told.encode()).hexdigest()


def _look_of(number: int, seed: int) -> int:
    return int(np.random.default_rng([seed, 7, number]).integers(_LOOKS))


@lru_cache(maxsize=4)
def _renderer(look: int, camera: int) -> Renderer:
    return Renderer(make_look(1000 + look), TWO_CAMERAS[camera])


@cache
def _optics(camera: int) -> Optics:
    return Optics(TWO_CAMERAS[camera], 1000 + camera)


def _render_track(name: str, number: int, frames: int, seed: int, occluded: float) -> Track:
    rng = np.random.default_rng([seed, 6, number])
    look = _look_of(number, seed)
    thing = place_object(name, f"{name}/{number:05d}", 60.0, rng)
    props = list(scatter_props(20.0, 150.0, rng))
    if rng.random() < occluded:
        props.append(occluder(thing, rng))
    day = _bad_weather(rng) if rng.random() < _BAD_WEATHER else _fair_weather(rng)
    passing = 1.75 * abs(thing.position[0] - LANE)  # nearer than this no camera sees all of it
    start, pace = rng.uniform(*_START), rng.uniform(*_PACE)
    quality = int(rng.integers(*_JPEG_QUALITY)) if rng.random() < _COMPRESSED else None
    distances = np.linspace(start, max(7.0, passing, start - pace * (frames - 1)), frames)
    shots = [
        _shoot(thing, props, look, step, float(distance), day, quality, rng)
        for step, distance in enumerate(distances)
    ]
    times = (distances[0] - distances) / _SPEED
    shown = tuple(
        Frame(image, box, camera, float(time))
        for (image, box, camera, hidden), time in zip(shots, times, strict=True)
        if hidden < MOST_HIDDEN
    )
    if not shown:  # a van all the way
        return _render_track(name, number, frames, seed, 0.0)
    return Track(thing.id, thing.label, shown)


def _fair_weather(rng: np.random.Generator) -> Conditions:
    return Conditions(
        light=rng.uniform(0.55, 1.2),
        blur=rng.uniform(0.0, 0.7),
        noise=rng.uniform(0.004, 0.015),
        rain=max(0.0, rng.uniform(-1.0, 0.5)),
        glare=max(0.0, rng.uniform(-1.5, 0.6)),
        jitter=rng.uniform(0.01, 0.035),
    )


def _bad_weather(rng: np.random.Generator) -> Conditions:
    """Dusk or heavy rain: what small, far signs look like then cannot be had by degrading their crops.

    No worse than what can still be read: a known object in a picture that shows nothing would teach the
    warnings that nothing is known.
    """
    return Conditions(
        light=rng.uniform(0.3, 0.8),
        blur=rng.uniform(0.5, 1.4),
        smear=rng.uniform(0.0, 3.0),
        noise=rng.uniform(0.01, 0.03),
        rain=max(0.0, rng.uniform(-1.0, 1.0)),
        jitter=rng.uniform(0.02, 0.06),
    )


def _shoot(
    thing: RoadsideObject,
    props: list[Prop],
    look: int,
    step: int,
    distance: float,
    day: Conditions,
    quality: int | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, tuple[float, float, float, float], int, float]:
    """The part of one image around the object, the box in it, the camera, and how much is hidden."""
    vehicle = (LANE + float(rng.normal(0, 0.15)), thing.position[2] - distance)
    camera = _camera_that_sees(thing, vehicle, look, step)
    renderer = _renderer(look, camera)
    x0, y0, x1, y1 = renderer.see([thing], vehicle)[0].box
    width, height = x1 - x0, y1 - y0
    left, top = max(0, int(x0 - _CONTEXT * width)), max(0, int(y0 - _CONTEXT * height))
    right = min(renderer.camera.width, int(x1 + _CONTEXT * width) + 1)
    bottom = min(renderer.camera.height, int(y1 + _CONTEXT * height) + 1)
    scene, seen = renderer.render([thing], props, vehicle, (left, top, right, bottom))
    image = _optics(camera).expose(scene, day, rng, (left, top))
    if quality is not None:
        image = through_jpeg(image, quality)
    dx, dy, wider, taller = rng.normal(0, day.jitter, 4)
    cx, cy = (x0 + x1) / 2 + dx * width - left, (y0 + y1) / 2 + dy * height - top
    half_width, half_height = width * np.exp(wider) / 2, height * np.exp(taller) / 2
    box = (float(cx - half_width), float(cy - half_height), float(cx + half_width), float(cy + half_height))
    return image, box, camera, seen[0].hidden


def _camera_that_sees(thing: RoadsideObject, vehicle: tuple[float, float], look: int, step: int) -> int:
    """The cameras take turns, but close by only one of them sees the whole object."""
    turns = [(step + i) % len(TWO_CAMERAS) for i in range(len(TWO_CAMERAS))]
    for camera in turns:
        renderer = _renderer(look, camera)
        for sighting in renderer.see([thing], vehicle):
            x0, y0, x1, y1 = sighting.box
            if x0 >= 0 and y0 >= 0 and x1 <= renderer.camera.width and y1 <= renderer.camera.height:
                return camera
    raise InputError(f"no camera sees '{thing.id}' at x, z = {thing.position[::2]} from {vehicle}")
