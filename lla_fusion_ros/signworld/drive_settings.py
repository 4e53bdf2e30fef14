"""Everything that determines a drive: cameras, objects, weather and mishaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lla_fusion_ros.signworld.camera import Camera, Conditions
from lla_fusion_ros.signworld.scene import RoadsideObject
from lla_fusion_ros.signworld.signs import CLASS_NAMES, FALSE_DETECTION, OUTSIDE_KINDS
from lla_fusion_ros.types.errors import InputError

TWO_CAMERAS = (
    Camera("left", offset=(-0.6, 1.45, 0.0), yaw=-5.0, focal=600.0, gain=1.12, tint=(1.0, 1.0, 0.97)),
    Camera("right", offset=(0.6, 1.65, 0.2), yaw=7.0, focal=520.0, gain=0.85, tint=(0.95, 1.0, 1.06)),
)
# Three that look to the left, ahead and to the right, and see the same only where their images meet.
THREE_CAMERAS = (
    Camera("left", offset=(-0.7, 1.6, 0.0), yaw=-38.0, focal=430.0, gain=1.05),
    Camera("front", offset=(0.0, 1.5, 0.4), focal=560.0),
    Camera("right", offset=(0.7, 1.6, 0.0), yaw=38.0, focal=430.0, gain=0.9),
)
RIGS = {"two": TWO_CAMERAS, "three": THREE_CAMERAS}


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
        row: seconds from and to which the vehicle passes a row of equal signs, in the place of `objects`.
        outside_share: of randomly placed objects, how many belong to no class.
        occluded: ids of the objects that have a van or bush before them; None draws `occluded_share` of them.
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
    row: tuple[float, float] | None = None
    outside_share: float = 0.12
    occluded: tuple[str, ...] | None = None
    occluded_share: float = 0.2
    conditions: Conditions = field(default_factory=Conditions)
    stretches: tuple[Stretch, ...] = ()
    switches: tuple[IdentitySwitch, ...] = ()
    blackouts: tuple[Blackout, ...] = ()
    min_box: float = 11.0
    max_boxes: int | None = None


def check_settings(settings: DriveSettings) -> None:
    """InputError for settings that contradict themselves."""
    names = [camera.name for camera in settings.cameras]
    if not names or len(set(names)) != len(names):
        raise InputError(f"a drive needs cameras with names of their own, got {names}")
    if not (settings.duration > 0 and settings.rate > 0 and settings.speed >= 0):
        raise InputError(
            f"duration={settings.duration} and rate={settings.rate} must be > 0, speed={settings.speed} >= 0"
        )
    if settings.row is not None and not 0 <= settings.row[0] < settings.row[1]:
        raise InputError(f"row={settings.row}: expected seconds from and to, the first below the second")
    unknown = [blackout.camera for blackout in settings.blackouts if blackout.camera not in names]
    if unknown:
        raise InputError(f"blackout of camera '{unknown[0]}', but the cameras are {', '.join(names)}")
    if settings.objects is not None:
        known = (*CLASS_NAMES, *OUTSIDE_KINDS, FALSE_DETECTION)
        for thing in settings.objects:
            for name in (thing.name, *(name for _, name in thing.phases)):
                if name not in known:
                    raise InputError(
                        f"object '{thing.id}' is a '{name}'; the sign world has {', '.join(known)}"
                    )
        ids = {thing.id for thing in settings.objects}
        if len(ids) != len(settings.objects):
            raise InputError("objects of a drive need ids of their own")
        wrong = [
            name for switch in settings.switches for name in (switch.first, switch.second) if name not in ids
        ]
        wrong += [name for name in settings.occluded or () if name not in ids]
        if wrong:
            raise InputError(f"'{wrong[0]}' is to be switched or occluded, but no object has that id")
