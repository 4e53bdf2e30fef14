"""Drives of up to six cameras with 20 objects in every frame, 640 x 480, JPEG: one is the load of soak."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.lab.makebag.write import drive_frames, make_bag, truth_beside
from lla_fusion_ros.signworld import CLASS_NAMES, Camera, Drive, DriveSettings, RoadsideObject
from lla_fusion_ros.signworld.geometry import rig_of

RATE, OBJECTS = 10.0, 20
# name, metres to the right, degrees to the right, focal length in pixels
_CAMERAS = (
    ("front_left", -0.8, -5.0, 560.0),
    ("front", 0.0, 0.0, 620.0),
    ("front_right", 0.8, 5.0, 560.0),
    ("roof_left", -0.5, -3.0, 700.0),
    ("roof", 0.0, 1.0, 760.0),
    ("roof_right", 0.5, 3.0, 700.0),
)
CAMERAS = tuple(name for name, *_ in _CAMERAS)
_SPEED = 6.0  # metres a second


def six_camera_drive(duration: float = 10.0, seed: int = 0, count: int = len(CAMERAS)) -> Drive:
    """Overlapping cameras, the first `count`, down an alley of signs: every frame has OBJECTS objects."""
    rng = np.random.default_rng([seed, 5])
    cameras = tuple(
        Camera(
            name,
            offset=(x, 1.5, 0.0),
            yaw=yaw,
            focal=focal,
            gain=float(rng.uniform(0.7, 1.1)),
            tint=(float(rng.uniform(0.94, 1.06)), 1.0, float(rng.uniform(0.94, 1.06))),
        )
        for name, x, yaw, focal in _CAMERAS[:count]
    )
    objects: list[RoadsideObject] = []
    for row in range(int((_SPEED * duration + 60) / 5.0) + 1):
        for x, y in ((5.0, 1.6), (5.6, 2.9), (-5.0, 1.6), (-5.6, 2.9)):
            name = CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))]
            place = (x, y, 10.0 + 5.0 * row + float(rng.uniform(-1, 1)))
            objects.append(RoadsideObject(f"{len(objects) + 1:03d}", name, place))
    return Drive(
        DriveSettings(
            seed=seed,
            duration=duration,
            rate=RATE,
            speed=_SPEED,
            cameras=cameras,
            objects=tuple(objects),
            occluded_share=0.0,
            min_box=6.0,
            max_boxes=OBJECTS,
        )
    )


def drive_bag(seconds: float, cameras: int) -> Path:
    """A drive as a detector without a tracker and a calibrated rig record it: boxes have no ids.

    Rendered once for each version and kept in the user's cache.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lla_fusion_ros"
    place = cache / f"drive-{cameras}-cameras-{seconds:g}s-{__version__}"
    if not (place.exists() and truth_beside(place).exists()):
        cache.mkdir(parents=True, exist_ok=True)
        drive = six_camera_drive(seconds, count=cameras)
        frames, rig = drive_frames(drive), rig_of(drive)
        make_bag(frames, place, "signworld", CLASS_NAMES, "jpeg", overwrite=True, with_ids=False, rig=rig)
    return place
