"""A drive along the road: frames of every camera with images, boxes, ids and the truth; the demo's drive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lla_fusion_ros.signworld.camera import Conditions, Optics
from lla_fusion_ros.signworld.drive_settings import (
    Blackout,
    DriveSettings,
    IdentitySwitch,
    Stretch,
    check_settings,
)
from lla_fusion_ros.signworld.render import Renderer, Sighting
from lla_fusion_ros.signworld.scene import (
    Prop,
    RoadsideObject,
    make_look,
    occluder,
    place_object,
    place_objects,
    place_row,
    scatter_props,
)
from lla_fusion_ros.signworld.signs import FALSE_DETECTION

LANE = 1.8  # where the vehicle drives, metres right of the road's middle
MOST_HIDDEN = 0.6  # of a box; from there on no detector reports it
SIGHT = 60.0  # metres ahead within which objects are tracked

# z in metres, side of the road, what stands there. The vehicle, at 9 m/s, is there after z / 9 seconds.
_DEMO_ROAD = (
    (22.0, "right", "speed limit 50"),
    (33.0, "left", "give way"),
    (44.0, "right", "priority road"),
    (57.0, "right", "pedestrians"),
    (66.0, "left", "parking"),
    (78.0, "right", "star board"),  # the unknown object
    (88.0, "left", "red light"),  # turns green
    (92.0, "right", "speed limit 80"),
    (104.0, "left", "roundabout"),
    (113.0, "right", "danger"),  # from here on dusk: the hard stretch
    (124.0, "right", "speed limit 30"),
    (135.0, "left", "no lorries"),
    (146.0, "right", "stop"),
    (157.0, "right", "bend"),
    (172.0, "right", "turn right"),  # these two change their ids
    (176.0, "left", "ice"),
    (192.0, "right", "no fishing"),  # looks like a sign and is none of the classes
    (205.0, "right", "turn left"),  # rain, and the right camera is silent
    (216.0, "left", "speed limit 100"),
    (228.0, "right", "no entry"),
    (243.0, "right", "charging point"),
    (256.0, "left", "speed limit 50"),
    (268.0, "right", "priority road"),
    (290.0, "right", "stop"),  # seen only in the dark, where nobody can tell
    (294.0, "left", "parking"),
)
_RED_TO_GREEN = ((6.4, "red light"), (1.0, "yellow light"), (60.0, "green light"))


@dataclass(frozen=True, slots=True)
class CameraFrame:
    """One image of one camera with what the tracker says and what is true.

    Attributes:
        stamp: nanoseconds.
        image: RGB.                                                   [height, width, 3] uint8
        boxes: cx, cy, w, h in pixels, as a tracker gives them.       [objects, 4] float64
        ids: of the tracks; after an identity switch not those of the objects.
        objects: what is in the box.
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
    objects: tuple[str, ...]
    labels: np.ndarray
    names: tuple[str, ...]
    hidden: np.ndarray
    switched: np.ndarray
    dark: bool


class Drive:
    """An iterable of CameraFrames in the order of their stamps; `len` counts them."""

    def __init__(self, settings: DriveSettings) -> None:
        check_settings(settings)
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
        return sum(1 for _ in self.schedule())

    def __iter__(self) -> Iterator[CameraFrame]:
        for step, camera in self.schedule():
            yield self.frame(step, camera)

    def schedule(self) -> Iterator[tuple[int, int]]:
        """Step and camera of every frame, in the order of their stamps."""
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
        things = [thing.at(time) for thing in self.objects if 0 < thing.position[2] - ahead < SIGHT]
        props = [prop for prop in self._props if 0 < prop.z - ahead < 150]
        scene, sightings = self._renderers[camera].render(things, props, vehicle)
        fault = self._blackout(camera, time)
        if fault is not None:
            scene = scene // 64
        image = self._optics[camera].expose(scene, conditions, rng)
        tracked = self._tracked(camera, sightings)
        own = tuple(sighting.thing.id for sighting in tracked)
        ids = tuple(self._tracker_id(name, time) for name in own)
        return CameraFrame(
            camera=self.camera_names[camera],
            stamp=settings.start + round(time * 1e9),
            image=image,
            boxes=_jittered(tracked, conditions.jitter, rng),
            ids=ids,
            objects=own,
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
            if large and inside >= 0.8 * (x1 - x0) * (y1 - y0) and sighting.hidden < MOST_HIDDEN:
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
    if settings.row is not None:
        begin, end = (settings.speed * time for time in settings.row)
        own = place_row(end, np.random.default_rng([settings.seed, 6]), max(begin, 10.0), "row{number:03d}")
        objects = (*(thing for thing in objects if not begin <= thing.position[2] < end), *own)
    props = list(scatter_props(-5.0, stop + 150.0, rng))
    drawn = [thing.id for thing in objects if rng.random() < settings.occluded_share]
    hidden = drawn if settings.occluded is None else settings.occluded
    props.extend(occluder(thing, rng) for thing in objects if thing.id in hidden)
    return objects, tuple(props)


def demo_drive(seed: int = 0) -> Drive:
    """28 seconds with two cameras at 10 Hz: what the package is for, one thing after the other.

    A clear day; a box around nothing but scenery; an unknown object, and a traffic light that turns green
    (6 s); dusk with blur and noise (9 to 16 s); an identity switch (17 s); an unknown object that looks like
    a sign; rain, and one camera that goes silent (20 to 23 s); darkness as in an unlit tunnel (from 25.3 s).
    """
    rng = np.random.default_rng([seed, 4])
    objects = tuple(
        place_object(name, f"{number:03d}", z, rng, right=float(side == "right"))
        for number, (z, side, name) in enumerate(_DEMO_ROAD, start=1)
    )
    ids = {thing.name: thing.id for thing in objects}
    objects = tuple(
        replace(thing, phases=_RED_TO_GREEN) if thing.name == "red light" else thing for thing in objects
    )
    objects += (RoadsideObject("099", FALSE_DETECTION, (14.0, 6.0, 60.0), side=2.0),)
    dusk = Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05)
    rain = Conditions(light=0.75, blur=0.7, noise=0.015, rain=0.8, jitter=0.035)
    dark = Conditions(light=0.12, blur=0.8, noise=0.12, jitter=0.04)
    return Drive(
        DriveSettings(
            seed=seed,
            look=seed + 2,  # seed 0, which most people see, drives under a blue sky
            duration=28.0,
            objects=objects,
            occluded=(ids["speed limit 80"], ids["no entry"]),
            stretches=(
                Stretch(2.0, 4.5, Conditions(glare=0.8)),
                Stretch(9.0, 16.0, dusk),
                Stretch(20.0, 24.5, rain),
                Stretch(25.3, 60.0, dark, ramp=0.3),
            ),
            switches=(IdentitySwitch(16.9, ids["turn right"], ids["ice"]),),
            blackouts=(Blackout("right", 20.0, 23.0),),
        )
    )
