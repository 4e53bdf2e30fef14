"""One frame of one camera, with what the tracker says and what is true: what every maker of bags yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lla_fusion_ros.signworld.drive import CameraFrame


@dataclass(frozen=True, slots=True)
class SceneFrame:
    """Attributes:
    stamp: nanoseconds.
    image: RGB.                                              [height, width, 3] uint8
    boxes: cx, cy, w, h in pixels.                           [objects, 4]
    ids: track ids.
    classes: what each object really is; None for something outside the classes.
    """

    camera: str
    stamp: int
    image: np.ndarray
    boxes: np.ndarray
    ids: tuple[str, ...]
    classes: tuple[str | None, ...]


def drive_frames(drive: Iterable[CameraFrame]) -> Iterator[SceneFrame]:
    """The frames of a sign-world drive."""
    for frame in drive:
        classes = tuple(
            name if label >= 0 else None for name, label in zip(frame.names, frame.labels, strict=True)
        )
        yield SceneFrame(frame.camera, frame.stamp, frame.image, frame.boxes, frame.ids, classes)
