"""The script of the demo."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.signworld.drive import Drive
from lla_fusion_ros.signworld.optics import Conditions
from lla_fusion_ros.signworld.placement import place_object
from lla_fusion_ros.signworld.settings import Blackout, DriveSettings, IdentitySwitch, Stretch

# z in metres, side of the road, what stands there. The vehicle, at 9 m/s, is there after z / 9 seconds.
_DEMO_ROAD = (
    (22.0, "right", "speed limit 50"),
    (33.0, "left", "give way"),
    (44.0, "right", "priority road"),
    (57.0, "right", "pedestrians"),
    (66.0, "left", "parking"),
    (78.0, "right", "star board"),  # the unknown object
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
)


def demo_drive(seed: int = 0) -> Drive:
    """28 seconds with two cameras at 10 Hz: what the package is for, one thing after the other.

    A clear day; an unknown object (6 s); dusk with blur and noise (9 to 16 s); an identity switch (17 s); an
    unknown object that looks like a sign; rain, and one camera that goes silent (20 to 23 s).
    """
    rng = np.random.default_rng([seed, 4])
    objects = tuple(
        place_object(name, f"{number:03d}", z, rng, right=float(side == "right"))
        for number, (z, side, name) in enumerate(_DEMO_ROAD, start=1)
    )
    ids = {thing.name: thing.id for thing in objects}
    dusk = Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05)
    rain = Conditions(light=0.75, blur=0.7, noise=0.015, rain=0.8, jitter=0.035)
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
                Stretch(20.0, 25.0, rain),
            ),
            switches=(IdentitySwitch(16.9, ids["turn right"], ids["ice"]),),
            blackouts=(Blackout("right", 20.0, 23.0),),
        )
    )
