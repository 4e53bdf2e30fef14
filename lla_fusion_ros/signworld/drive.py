"""A drive along the road: frames of every camera with images, tracked boxes, ids and the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.signworld.optics import Conditions, Optics
from lla_fusion_ros.signworld.outside import OUTSIDE_KINDS
from lla_fusion_ros.signworld.placement import place_objects
from lla_fusion_ros.signworld.render import Renderer, Sighting
from lla_fusion_ros.signworld.scene import Prop, RoadsideObject, make_look, occluder, scatter_props
from lla_fusion_ros.signworld.signs import CLASS_NAMES

LANE = 1.8  # where the vehicle drives, metres right of the road's middle
SIGHT = 60.0  # metres ahead within which objects are tracked
TWO_CAMERAS = (
    Camera("left", offset=(-0.6, 1.45, 0.0), yaw=-5.0, focal=600.0, gain=1.12, tint=(1.0, 1.0, 0.97)),
    Camera("right", offset=(0.6, 1.65, 0.2), yaw=7.0, focal=520.0, gain=0.85, tint=(0.95, 1.0, 1.06)),
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Conditions for some seconds of the drive; they come and go within `ramp` seconds."""

    start: float
    stop: float
    conditions: Conditions
    ramp: float = 0.8

    def share(self, time: float) -> float:
        """How much of it holds now, 0 to 1."""
        return float(np.clip(min(time - self.start, self.stop - time) / self.ramp + 1, 0, 1))


@dataclass(frozen=True, slots=True)
class IdentitySwitch:
    """From `time` on the tracker confuses two objects: each carries the other's id."""

    time: float
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Blackout:
    """A camera fails: `dark` images are black but the tracker still gives boxes; `silent` sends nothing."""

    camera: str
    start: float
    stop: float
    kind: Literal["dark", "silent"] = "silent"


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """Everything that determines a drive; equal settings give equal pixels.

    Attributes:
        look: seed of the country's looks; None follows `seed`.
        duration: seconds.
        rate: frames per second of each camera.
        stagger: seconds between the exposures of one camera and the next.
        speed: metres per second.
        start: stamp of the first frame, nanoseconds.
        objects: what stands along the road; None places signs at random.
        outside_share: of randomly placed objects, how many belong to no class.
        occluded_share: of the objects, how many have a van or bush before them.
        conditions: outside the stretches.
        min_box: smaller boxes (longer side, pixels) are not tracked yet.
        max_boxes: per frame, the largest; None is all.
    """

    seed: int = 0
    look: int | None = None
    duration: float = 20.0
    rate: float = 10.0
    stagger: float = 0.005
    speed: float = 9.0
    start: int = 1_700_000_000_000_000_000
    cameras: tuple[Camera, ...] = TWO_CAMERAS
    objects: tuple[RoadsideObject, ...] | None = None
    outside_share: float = 0.12
    occluded_share: float = 0.2
    conditions: Conditions = field(default_factory=Conditions)
    stretches: tuple[Stretch, ...] = ()
    switches: tuple[IdentitySwitch, ...] = ()
    blackouts: tuple[Blackout, ...] = ()
    min_box: float = 11.0
    max_boxes: int | None = None


@dataclass(frozen=True, slots=True)
class CameraFrame:
    """One image of one camera with what the tracker says and what is true.

    Attributes:
        stamp: nanoseconds.
        image: RGB.                                                   [height, width, 3] uint8
        boxes: cx, cy, w, h in pixels, as a tracker gives them.       [objects, 4] float64
        ids: of the tracks; after an identity switch not those of the objects.
        labels: the true class of what is in the box, -1 outside.     [objects] int64
        names: the true class or kind of what is in the box.
        hidden: how much of the box is covered, 0 to 1.               [objects] float64
        switched: whether the id belongs to another object.           [objects] bool
        dark: whether the camera has failed.
    """

    camera: str
    stamp: int
    image: np.ndarray
    boxes: np.ndarray
    ids: tuple[str, ...]
    labels: np.ndarray
    names: tuple[str, ...]
    hidden: np.ndarray
    switched: np.ndarray
    dark: bool


class Drive:
    """An iterable of CameraFrames in the order of their stamps; `len` counts them."""

    def __init__(self, settings: DriveSettings) -> None:
        _check(settings)
        self.settings = settings
        self.camera_names = tuple(camera.name for camera in settings.cameras)
        self.objects, self._props = _furnish(settings)
        look = make_look(settings.seed if settings.look is None else settings.look)
        self._renderers = tuple(Renderer(look, camera) for camera in settings.cameras)
        self._optics = tuple(Optics(camera, settings.seed + i) for i, camera in enumerate(settings.cameras))

    @property
    def steps(self) -> int:
        """Moments of the drive; each camera takes one image at each."""
        return int(round(self.settings.duration * self.settings.rate))

    def __len__(self) -> int:
        return sum(1 for _ in self._schedule())

    def __iter__(self) -> Iterator[CameraFrame]:
        for step, camera in self._schedule():
            yield self.frame(step, camera)

    def _schedule(self) -> Iterator[tuple[int, int]]:
        for step in range(self.steps):
            for camera in range(len(self.camera_names)):
                fault = self._blackout(camera, self._time(step, camera))
                if fault is None or fault.kind != "silent":
                    yield step, camera

    def frame(self, step: int, camera: int) -> CameraFrame:
        """Any one frame, without the others."""
        settings, time = self.settings, self._time(step, camera)
        rng = np.random.default_rng([settings.seed, 3, step, camera])
        conditions = self.conditions(time)
        vehicle = self.vehicle(time)
        ahead = vehicle[1]
        things = [thing for thing in self.objects if 0 < thing.position[2] - ahead < SIGHT]
        props = [prop for prop in self._props if -5 < prop.z - ahead < 175]
        scene, sightings = self._renderers[camera].render(things, props, vehicle)
        fault = self._blackout(camera, time)
        if fault is not None:
            scene = scene // 64
        image = self._optics[camera].expose(scene, conditions, rng)
        tracked = self._tracked(camera, sightings)
        own = [sighting.thing.id for sighting in tracked]
        ids = tuple(self._tracker_id(name, time) for name in own)
        return CameraFrame(
            camera=self.camera_names[camera],
            stamp=settings.start + round(time * 1e9),
            image=image,
            boxes=_jittered(tracked, conditions.jitter, rng),
            ids=ids,
            labels=np.array([sighting.thing.label for sighting in tracked], np.int64),
            names=tuple(sighting.thing.name for sighting in tracked),
            hidden=np.array([sighting.hidden for sighting in tracked], np.float64),
            switched=np.array([a != b for a, b in zip(ids, own, strict=True)], bool),
            dark=fault is not None,
        )

    def vehicle(self, time: float) -> tuple[float, float]:
        """Where the vehicle is, x and z."""
        return LANE + 0.18 * float(np.sin(0.5 * time)), self.settings.speed * time

    def conditions(self, time: float) -> Conditions:
        """What the weather and light are at a time."""
        now = self.settings.conditions
        for stretch in self.settings.stretches:
            now = now.towards(stretch.conditions, stretch.share(time))
        return now

    def _time(self, step: int, camera: int) -> float:
        return step / self.settings.rate + camera * self.settings.stagger

    def _blackout(self, camera: int, time: float) -> Blackout | None:
        name = self.camera_names[camera]
        for blackout in self.settings.blackouts:
            if blackout.camera == name and blackout.start <= time < blackout.stop:
                return blackout
        return None

    def _tracked(self, camera: int, sightings: list[Sighting]) -> list[Sighting]:
        """What a tracker would report: large enough, mostly in the image, not hidden; the largest first."""
        size = self.settings.cameras[camera]
        kept = []
        for sighting in sightings:
            x0, y0, x1, y1 = sighting.box
            inside = (min(x1, size.width) - max(x0, 0)) * (min(y1, size.height) - max(y0, 0))
            large = max(x1 - x0, y1 - y0) >= self.settings.min_box
            if large and inside >= 0.8 * (x1 - x0) * (y1 - y0) and sighting.hidden < 0.8:
                kept.append(sighting)
        kept.sort(key=lambda sighting: sighting.depth)
        return kept[: self.settings.max_boxes]

    def _tracker_id(self, own: str, time: float) -> str:
        for switch in self.settings.switches:
            if time >= switch.time and own in (switch.first, switch.second):
                own = switch.second if own == switch.first else switch.first
        return own


def _jittered(sightings: list[Sighting], jitter: float, rng: np.random.Generator) -> np.ndarray:
    boxes = np.array([sighting.box for sighting in sightings], np.float64).reshape(-1, 4)
    sides = boxes[:, 2:] - boxes[:, :2]
    moved = (boxes[:, :2] + boxes[:, 2:]) / 2 + sides * rng.normal(0, jitter, sides.shape)
    grown = sides * np.exp(rng.normal(0, jitter, sides.shape))
    return np.concatenate([moved, grown], axis=1)


def _furnish(settings: DriveSettings) -> tuple[tuple[RoadsideObject, ...], tuple[Prop, ...]]:
    """Objects and scenery of the whole drive."""
    rng = np.random.default_rng([settings.seed, 0])
    stop = settings.speed * settings.duration
    objects = settings.objects
    if objects is None:
        objects = place_objects(stop + SIGHT, settings.outside_share, rng)
    props = list(scatter_props(-5.0, stop + 175.0, rng))
    hidden = [thing for thing in objects if rng.random() < settings.occluded_share]
    props.extend(occluder(thing, rng) for thing in hidden)
    return objects, tuple(props)


def _check(settings: DriveSettings) -> None:
    names = [camera.name for camera in settings.cameras]
    if not names or len(set(names)) != len(names):
        raise InputError(f"a drive needs cameras with names of their own, got {names}")
    if not (settings.duration > 0 and settings.rate > 0 and settings.speed >= 0):
        raise InputError(
            f"duration={settings.duration} and rate={settings.rate} must be > 0, speed={settings.speed} >= 0"
        )
    unknown = [blackout.camera for blackout in settings.blackouts if blackout.camera not in names]
    if unknown:
        raise InputError(f"blackout of camera '{unknown[0]}', but the cameras are {', '.join(names)}")
    if settings.objects is not None:
        strange = [thing for thing in settings.objects if thing.name not in (*CLASS_NAMES, *OUTSIDE_KINDS)]
        if strange:
            raise InputError(
                f"object '{strange[0].id}' is a '{strange[0].name}'; the sign world has "
                f"{', '.join((*CLASS_NAMES, *OUTSIDE_KINDS))}"
            )
        ids = {thing.id for thing in settings.objects}
        if len(ids) != len(settings.objects):
            raise InputError("objects of a drive need ids of their own")
        wrong = [
            name for switch in settings.switches for name in (switch.first, switch.second) if name not in ids
        ]
        if wrong:
            raise InputError(f"identity switch of '{wrong[0]}', but no object has that id")
