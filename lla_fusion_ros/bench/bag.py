"""The load: a drive with six cameras, 20 tracked objects in every frame, 640 x 480, JPEG."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from lla_fusion_ros.errors import BagError
from lla_fusion_ros.makebag.scene import SceneFrame, drive_frames
from lla_fusion_ros.makebag.write import make_bag
from lla_fusion_ros.signworld import CLASS_NAMES, six_camera_drive

RATE, OBJECTS = 10.0, 20
CAMERAS = ("front_left", "front", "front_right", "roof_left", "roof", "roof_right")


def six_camera_bag(seconds: float, progress: Callable[[int, int], None] | None = None) -> Path:
    """The bag, rendered once and kept in the user's cache; delete it there to have it drawn anew."""
    drive = six_camera_drive(duration=seconds, rate=RATE, boxes=OBJECTS)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lla_fusion_ros"
    place = cache / f"six-cameras-{seconds:g}s-{_renderer()}"
    done = place.with_name(place.name + ".truth.json")
    if place.exists() and done.exists():
        return place
    cache.mkdir(parents=True, exist_ok=True)
    total = len(drive)

    def counted() -> Iterator[SceneFrame]:
        for number, frame in enumerate(drive_frames(drive), start=1):
            if progress is not None:
                progress(number, total)
            yield frame

    made = make_bag(counted(), place, "signworld", CLASS_NAMES, encoding="jpeg", overwrite=True)
    if set(made.cameras) != set(CAMERAS):
        raise BagError(f"the drive has the cameras {', '.join(made.cameras)}, expected {', '.join(CAMERAS)}")
    return place


def _renderer() -> str:
    """Changes with the code of the sign world, so that an old bag is not taken for a new one."""
    folder = Path(__file__).resolve().parents[1] / "signworld"
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]
