"""What stands along the road: signs, objects outside the classes, and scenery; where, and how it looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import cv2
import numpy as np

from lla_fusion_ros.signworld.scenery import draw_scenery
from lla_fusion_ros.signworld.signs import CLASS_NAMES, LIGHT_NAMES, OUTSIDE_KINDS, SIGN_NAMES
from lla_fusion_ros.signworld.surroundings import make_ground, make_panorama

_VARIANTS = {"tree": 4, "conifer": 2, "bush": 3, "house": 4, "van": 3, "post": 1, "lamp": 1}
# Width and height in metres, and the range of distances from the road's middle.
_MEASURES = {
    "tree": ((6.2, 8.0), (11.0, 28.0)),
    "conifer": ((4.3, 8.0), (12.0, 30.0)),
    "bush": ((3.2, 2.0), (8.5, 20.0)),
    "house": ((13.0, 10.5), (19.0, 34.0)),
    "van": ((2.0, 2.25), (5.4, 5.8)),
    "post": ((0.13, 1.0), (4.3, 4.3)),
    "lamp": ((1.7, 8.0), (5.2, 5.2)),
}


@dataclass(frozen=True, slots=True)
class RoadsideObject:
    """Something a tracker follows.

    Attributes:
        name: one of CLASS_NAMES or OUTSIDE_KINDS, or FALSE_DETECTION.
        position: of the middle of its face, x, y, z in metres.
        side: of the square that holds the face, in metres.
        yaw: degrees away from facing the traffic.
        fade: brightness of its paint, 1 is new.
        phases: seconds and class, one after the other from the drive's start, again and again; none: it stays
            what it is.
    """

    id: str
    name: str
    position: tuple[float, float, float]
    side: float = 0.85
    yaw: float = 0.0
    fade: float = 1.0
    phases: tuple[tuple[float, str], ...] = ()

    def at(self, time: float) -> RoadsideObject:
        """What it is at a time of the drive."""
        if not self.phases:
            return self
        seconds, names = zip(*self.phases, strict=True)
        ends = np.cumsum(seconds)
        now = int(np.searchsorted(ends[:-1], time % ends[-1], side="right"))
        return replace(self, name=names[now])

    @property
    def label(self) -> int:
        """The class, or -1 for something outside the classes."""
        return CLASS_NAMES.index(self.name) if self.name in CLASS_NAMES else -1


@dataclass(frozen=True, slots=True)
class Prop:
    """A piece of scenery: a picture that faces the camera and stands on the ground at x, z."""

    kind: str
    variant: int
    x: float
    z: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Look:
    """How a stretch of country looks.

    Attributes:
        panorama, haze, ground: see textures.
        pictures: pyramids of RGBA pictures of the scenery, by kind and variant.
    """

    panorama: np.ndarray
    haze: np.ndarray
    ground: np.ndarray
    pictures: dict[tuple[str, int], tuple[np.ndarray, ...]]


def pyramid(picture: np.ndarray) -> tuple[np.ndarray, ...]:
    """The picture, and it halved again and again, so that far things do not flicker."""
    levels = [picture]
    while min(levels[-1].shape[:2]) > 8:
        height, width = levels[-1].shape[:2]
        levels.append(cv2.resize(levels[-1], (width // 2, height // 2), interpolation=cv2.INTER_AREA))
    return tuple(levels)


@lru_cache(maxsize=16)
def make_look(seed: int) -> Look:
    """The look of one country; equal seeds give equal looks. Kept, because it takes a while to draw."""
    rng = np.random.default_rng([seed, 1])
    panorama, haze = make_panorama(rng)
    pictures = {
        (kind, variant): pyramid(draw_scenery(kind, rng))
        for kind, variants in _VARIANTS.items()
        for variant in range(variants)
    }
    return Look(panorama, haze, make_ground(rng), pictures)


def make_prop(kind: str, x: float, z: float, rng: np.random.Generator, zoom: float = 1.0) -> Prop:
    """A piece of scenery at a given place."""
    (width, height), _ = _MEASURES[kind]
    grown = zoom * rng.uniform(0.85, 1.2) if kind not in ("post", "lamp") else zoom
    return Prop(kind, int(rng.integers(_VARIANTS[kind])), x, z, width * grown, height * grown)


def scatter_props(start: float, stop: float, rng: np.random.Generator) -> tuple[Prop, ...]:
    """Scenery for the road between two z, at random but in plausible places."""
    props = []
    share = {"tree": 0.38, "conifer": 0.16, "bush": 0.24, "house": 0.22}
    for z in np.arange(start, stop, 4.2):
        for side in (-1, 1):
            kind = str(rng.choice(list(share), p=list(share.values())))
            near, far = _MEASURES[kind][1]
            props.append(make_prop(kind, side * rng.uniform(near, far), z + rng.uniform(-2, 2), rng))
    for z in np.arange(start - start % 25, stop, 25.0):
        props.append(make_prop("post", 4.3, z, rng))
        props.append(make_prop("post", -4.3, z + 12.5, rng))
    for z in np.arange(start - start % 45 + 20, stop, 45.0):
        props.append(make_prop("lamp", 5.2, z, rng))
    return tuple(props)


def occluder(thing: RoadsideObject, rng: np.random.Generator) -> Prop:
    """Something a few metres before an object that hides a part of it while the vehicle comes nearer."""
    x, _, z = thing.position
    ahead = rng.uniform(4.0, 7.0)
    if rng.random() < 0.5:
        return make_prop("van", x - np.sign(x) * rng.uniform(0.2, 1.0), z - ahead, rng)
    return make_prop(
        "bush", x + np.sign(x) * rng.uniform(-0.4, 1.2), z - ahead, rng, zoom=rng.uniform(0.9, 1.15)
    )


def place_object(
    name: str, id: str, z: float, rng: np.random.Generator, right: float = 0.7
) -> RoadsideObject:
    """One object at z, the rest at random; `right` is the chance that it stands on the right."""
    side = 1 if rng.random() < right else -1
    return RoadsideObject(
        id=id,
        name=name,
        position=(side * rng.uniform(4.7, 6.2), rng.uniform(2.1, 2.8), z),
        side=rng.uniform(0.9, 1.15),
        yaw=rng.uniform(-12, 12),
        fade=rng.uniform(0.86, 1.0),
    )


def place_row(
    stop: float, rng: np.random.Generator, start: float = 20.0, name: str = "{number:03d}"
) -> tuple[RoadsideObject, ...]:
    """Equal signs in a row from z = `start` to `stop`: nothing but their places tells them apart."""
    gap, x, y = rng.uniform(4.0, 8.0), rng.uniform(4.7, 6.2), rng.uniform(1.2, 2.4)
    side = 1 if rng.random() < 0.7 else -1
    shown = SIGN_NAMES[int(rng.integers(len(SIGN_NAMES)))]
    places = np.arange(start, stop, gap).tolist()
    return tuple(
        RoadsideObject(name.format(number=number), shown, (side * x, y, z), 0.9)
        for number, z in enumerate(places, start=1)
    )


def place_objects(stop: float, outside_share: float, rng: np.random.Generator) -> tuple[RoadsideObject, ...]:
    """Objects up to z = `stop`, 7 to 14 metres apart, every class about equally often; lights change."""
    places = []
    z = 14.0
    while z < stop:
        places.append(z)
        z += rng.uniform(7.0, 14.0)
    classes = [CLASS_NAMES[i % len(CLASS_NAMES)] for i in range(len(places))]
    rng.shuffle(classes)
    names = [str(rng.choice(OUTSIDE_KINDS)) if rng.random() < outside_share else name for name in classes]
    placed = [
        place_object(name, f"{number:03d}", z, rng)
        for number, (name, z) in enumerate(zip(names, places, strict=True), start=1)
    ]
    return tuple(
        replace(thing, phases=_phases(thing.name, rng)) if thing.name in LIGHT_NAMES else thing
        for thing in placed
    )


def _phases(first: str, rng: np.random.Generator) -> tuple[tuple[float, str], ...]:
    """Red, green and yellow in turn, beginning with `first`."""
    red, yellow, green = LIGHT_NAMES
    turns = [(rng.uniform(3.0, 5.0), red), (rng.uniform(3.0, 5.0), green), (1.5, yellow)]
    start = [name for _, name in turns].index(first)
    return tuple(turns[start:] + turns[:start])
