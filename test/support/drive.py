"""A short sign-world drive with all that nodes must cope with; rendered once per test session."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lla_fusion_ros.signworld import CameraFrame, Conditions, Drive, DriveSettings, IdentitySwitch, Stretch
from lla_fusion_ros.signworld.scene import place_object

UNKNOWN = "006"  # the id of the object outside the classes
SWITCHED = ("002", "003")  # ids that change places
SWITCH_TIME = 2.45
HARD_FROM = 3.0  # seconds: dusk, blur and noise
# z in metres, side of the road, what stands there; the vehicle drives 9 m/s
_ROAD = (
    (26.0, "right", "speed limit 50"),
    (36.0, "left", "give way"),
    (39.0, "right", "no entry"),
    (60.0, "right", "pedestrians"),
    (66.0, "left", "parking"),
    (42.0, "left", "star board"),
    (72.0, "right", "speed limit 80"),
    (78.0, "left", "roundabout"),
    (84.0, "right", "stop"),
)


@lru_cache(maxsize=1)
def short_drive() -> tuple[CameraFrame, ...]:
    """All frames of it."""
    return tuple(short_road())


def short_road() -> Drive:
    """Two cameras at 10 Hz for 5.5 seconds."""
    rng = np.random.default_rng(5)
    objects = tuple(
        place_object(name, f"{number:03d}", z, rng, right=float(side == "right"))
        for number, (z, side, name) in enumerate(_ROAD, start=1)
    )
    dusk = Conditions(light=0.2, blur=2.2, smear=5.0, noise=0.06, jitter=0.09)
    settings = DriveSettings(
        seed=3,
        duration=5.5,
        objects=objects,
        occluded_share=0.3,
        stretches=(Stretch(HARD_FROM, 6.0, dusk),),
        switches=(IdentitySwitch(SWITCH_TIME, *SWITCHED),),
    )
    return Drive(settings)
