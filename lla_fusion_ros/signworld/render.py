"""From a scene to the light that reaches a camera: the whole image, or only a window of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np

from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.signworld.scene import Look, Prop, RoadsideObject, pyramid
from lla_fusion_ros.signworld.signs import FALSE_DETECTION, face_of
from lla_fusion_ros.signworld.surroundings import HAZE_DISTANCE, Ground, Window, sample_panorama

_FARTHEST, _NEAREST = 140.0, 1.5
_SHADOWS = 45.0  # metres; farther ones would be a few pixels
_CLEARNESS = np.array([[0, 0, 0, -1, 255]] * 3, np.float64)  # 255 - alpha, three times
_POLE = np.array([126, 130, 132], np.float32)


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a camera sees an object.

    Attributes:
        box: x0, y0, x1, y1 in pixels of the whole image; may reach beyond it.
        hidden: how much of the box nearer things cover, 0 to 1.
    """

    thing: RoadsideObject
    box: tuple[float, float, float, float]
    depth: float
    hidden: float


class Renderer:
    """One camera in one country; keeps what does not change while the vehicle drives."""

    def __init__(self, look: Look, camera: Camera) -> None:
        self.camera = camera
        self._look = look
        self._sky = sample_panorama(look.panorama, camera.rays())
        self._ground = Ground(look.ground, look.haze, camera)

    @property
    def full(self) -> Window:
        return 0, 0, self.camera.width, self.camera.height

    def see(self, things: Iterable[RoadsideObject], vehicle: tuple[float, float]) -> list[Sighting]:
        """Where the objects before the camera fall, farthest first, not yet counting what hides them."""
        sightings = []
        for thing in things:
            corners, depth = self.camera.project(_face_corners(thing, tight=True), vehicle)
            if depth.min() < _NEAREST or depth.max() > _FARTHEST:
                continue
            (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
            if x1 > 0 and y1 > 0 and x0 < self.camera.width and y0 < self.camera.height:
                sightings.append(Sighting(thing, (x0, y0, x1, y1), float(depth.mean()), 0.0))
        return sorted(sightings, key=lambda sighting: -sighting.depth)

    def render(
        self,
        things: Iterable[RoadsideObject],
        props: Iterable[Prop],
        vehicle: tuple[float, float],
        window: Window | None = None,
    ) -> tuple[np.ndarray, list[Sighting]]:
        """The window of the image, RGB uint8, and what is seen where."""
        window = window or self.full
        image = self._backdrop(vehicle, window)
        layers: list[Sighting | _Standing] = [
            *self.see(things, vehicle),
            *self._standing(props, vehicle, window),
        ]
        seen: list[Sighting] = []
        for layer in sorted(layers, key=lambda layer: -layer.depth):
            if isinstance(layer, Sighting):
                cover = self._draw_thing(image, window, layer, vehicle)
                seen = [*(_hide(sighting, cover) for sighting in seen), layer]
            else:
                cover = self._draw_prop(image, window, layer)
                seen = [_hide(sighting, cover) for sighting in seen]
        return image, seen

    def _standing(
        self, props: Iterable[Prop], vehicle: tuple[float, float], window: Window
    ) -> list[_Standing]:
        """The scenery in the window with its place in the image."""
        everything = list(props)
        places = np.array([(prop.x, 0.0, prop.z, prop.width, prop.height) for prop in everything]).reshape(
            -1, 5
        )
        feet, depths = self.camera.project(places[:, :3], vehicle)
        near = (depths > _NEAREST) & (depths < _FARTHEST)
        sizes = places[:, 3:] * (self.camera.focal / np.where(near, depths, np.inf))[:, None]
        corner = feet - sizes * (0.5, 1.0)  # upper left
        end = corner + sizes
        shown = near & (end > window[:2]).all(axis=1) & (corner < window[2:]).all(axis=1) & (sizes[:, 1] > 1)
        return [_Standing(everything[i], corner[i], end[i], float(depths[i])) for i in np.flatnonzero(shown)]

    def _backdrop(self, vehicle: tuple[float, float], window: Window) -> np.ndarray:
        x0, y0, x1, y1 = window
        image = self._sky[y0:y1, x0:x1].copy()
        top = max(y0, self._ground.horizon)
        if top < y1:
            image[top - y0 :] = self._ground.render(self.camera.position(vehicle), (x0, top, x1, y1))
        return image

    def _draw_prop(self, image: np.ndarray, window: Window, standing: _Standing) -> _Cover | None:
        (x0, y0), (x1, y1) = standing.corner, standing.end
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
        if standing.depth < _SHADOWS:
            across, along = 0.62 * (x1 - x0), 0.09 * (x1 - x0)
            foot = np.array([(x0 + x1) / 2, y1])
            ends = np.array([(-across, -along), (across, -along), (across, along), (-across, along)])
            self._paste(image, window, _shadow(), foot + ends, 0.0, 1.0)
        picture = self._look.pictures[standing.prop.kind, standing.prop.variant]
        return self._paste(image, window, picture, corners, standing.depth, 1.0)

    def _draw_thing(
        self, image: np.ndarray, window: Window, sighting: Sighting, vehicle: tuple[float, float]
    ) -> _Cover | None:
        thing = sighting.thing
        if thing.name == FALSE_DETECTION:
            return None
        if thing.name != "balloon":
            self._draw_pole(image, window, thing, vehicle, sighting.depth)
        corners, _ = self.camera.project(_face_corners(thing, tight=False), vehicle)
        return self._paste(image, window, _face_pyramid(thing.name), corners, sighting.depth, thing.fade)

    def _draw_pole(
        self,
        image: np.ndarray,
        window: Window,
        thing: RoadsideObject,
        vehicle: tuple[float, float],
        depth: float,
    ) -> None:
        x, y, z = thing.position
        ends, _ = self.camera.project(np.array([[x, y, z + 0.04], [x, 0.0, z + 0.04]]), vehicle)
        half = 0.035 * self.camera.focal / depth
        haze = 1 - np.exp(-depth / HAZE_DISTANCE)
        for left, right, tone in ((-1.0, 1.0, 0.85), (-1.0, -0.2, 1.25)):  # the lit side over the whole
            quad = [ends[0] + (left * half, 0), ends[0] + (right * half, 0)]
            quad += [ends[1] + (right * half, 0), ends[1] + (left * half, 0)]
            points = np.rint((np.array(quad) - window[:2]) * 16).astype(np.int32)
            paint = _POLE * tone + haze * (self._look.haze - _POLE * tone)
            cv2.fillConvexPoly(image, points, paint.tolist(), cv2.LINE_AA, 4)

    def _paste(
        self,
        image: np.ndarray,
        window: Window,
        picture: tuple[np.ndarray, ...],
        corners: np.ndarray,
        depth: float,
        fade: float,
    ) -> _Cover | None:
        """Put a picture onto the quadrilateral with these corners; None where the window does not show it."""
        x0, y0 = np.maximum(np.floor(corners.min(axis=0)).astype(int) - 1, window[:2])
        x1, y1 = np.minimum(np.ceil(corners.max(axis=0)).astype(int) + 2, window[2:])
        if x0 >= x1 or y0 >= y1:
            return None
        width = float(np.linalg.norm(corners[1] - corners[0]))
        level = int(np.clip(np.floor(np.log2(picture[0].shape[1] / max(width, 1e-3))), 0, len(picture) - 1))
        source = picture[level]
        patch = _warp(source, corners - (x0, y0), (int(x1 - x0), int(y1 - y0)))
        haze = float(1 - np.exp(-depth / HAZE_DISTANCE))
        # Colours are multiplied by alpha, so haze and fading are linear in red, green, blue and alpha.
        dim = np.eye(3) * fade * (1 - haze)
        colour = cv2.transform(patch, np.column_stack([dim, haze * self._look.haze / 255]))
        clear = cv2.transform(patch, _CLEARNESS)
        place = image[y0 - window[1] : y1 - window[1], x0 - window[0] : x1 - window[0]]
        place[:] = cv2.add(cv2.multiply(place, clear, scale=1 / 255), colour)
        return _Cover((int(x0), int(y0), int(x1), int(y1)), patch[..., 3])


@dataclass(frozen=True, slots=True)
class _Standing:
    """A piece of scenery and the rectangle it takes: upper left and lower right pixel, [2] each."""

    prop: Prop
    corner: np.ndarray
    end: np.ndarray
    depth: float


@dataclass(frozen=True, slots=True)
class _Cover:
    """What a pasted picture hides: its window, and how solid it is there."""

    window: Window
    alpha: np.ndarray


def _hide(sighting: Sighting, cover: _Cover | None) -> Sighting:
    """The sighting after something nearer was drawn."""
    if cover is None:
        return sighting
    x0, y0, x1, y1 = sighting.box
    left, top, right, bottom = cover.window
    if min(x1, right) <= max(x0, left) or min(y1, bottom) <= max(y0, top):
        return sighting
    rows = slice(max(0, round(y0) - top), max(0, round(y1) - top))
    columns = slice(max(0, round(x0) - left), max(0, round(x1) - left))
    share = float(cover.alpha[rows, columns].sum()) / 255 / max(1.0, (x1 - x0) * (y1 - y0))
    return Sighting(sighting.thing, sighting.box, sighting.depth, min(1.0, sighting.hidden + share))


def _face_corners(thing: RoadsideObject, tight: bool) -> np.ndarray:
    """The corners of the face, clockwise from top left; `tight` leaves out clear edges.  [4, 3]"""
    left, top, right, bottom = _solid_part(thing.name) if tight else (-1.0, -1.0, 1.0, 1.0)
    turn = np.deg2rad(thing.yaw)
    across = np.array([np.cos(turn), 0.0, np.sin(turn)]) * thing.side / 2
    down = np.array([0.0, -1.0, 0.0]) * thing.side / 2
    places = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    return np.array(thing.position) + places @ np.stack([across, down])


@cache
def _face_pyramid(name: str) -> tuple[np.ndarray, ...]:
    return pyramid(face_of(name))


@cache
def _shadow() -> tuple[np.ndarray, ...]:
    """What lies dark under trees and houses: black, clearer towards the edge."""
    y, x = np.mgrid[-1:1:48j, -1:1:48j]
    picture = np.zeros((48, 48, 4), np.uint8)
    picture[..., 3] = 150 * np.clip(1.2 * (1 - np.hypot(x, y)), 0, 1) ** 0.8
    return pyramid(picture)


@cache
def _solid_part(name: str) -> tuple[float, float, float, float]:
    """The part of a face that is not clear, in -1..1."""
    if name == FALSE_DETECTION:
        return -1.0, -1.0, 1.0, 1.0
    alpha = face_of(name)[..., 3] > 127
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    scale = 2 / len(alpha)
    left, top, right, bottom = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    return left * scale - 1, top * scale - 1, right * scale - 1, bottom * scale - 1


def _warp(picture: np.ndarray, corners: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The picture on the quadrilateral with these corners, on a clear ground of `size` (width, height)."""
    height, width = picture.shape[:2]
    (left, top), (right, bottom) = corners[0], corners[2]
    if corners[1, 0] == right and corners[1, 1] == top and corners[3, 0] == left and corners[3, 1] == bottom:
        # Upright, as all scenery is: the general map would cost three times as much to find and apply.
        across, down = (right - left) / width, (bottom - top) / height
        shift = [[across, 0, left + across / 2 - 0.5], [0, down, top + down / 2 - 0.5]]
        return cv2.warpAffine(picture, np.array(shift), size, flags=cv2.INTER_LINEAR)
    edges = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32) - 0.5
    matrix = cv2.getPerspectiveTransform(edges, (corners - 0.5).astype(np.float32))
    return cv2.warpPerspective(picture, matrix, size, flags=cv2.INTER_LINEAR)
