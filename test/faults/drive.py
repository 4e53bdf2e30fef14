"""The drive that plays while faults are injected: laps of a short sign-world drive, two cameras, 10 Hz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np

from faults.core import Shot
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_compressed_image, write_image
from lla_fusion_ros.signworld import CameraFrame
from support.camera import SECOND
from support.drive import short_drive

CAMERAS = ("left", "right")
COMPRESSED = {"left": False, "right": True}  # both transports are in use
LAP = 6 * SECOND
BEGIN = 1_800_000_000 * SECOND
TENTH = SECOND // 10


@lru_cache(maxsize=256)
def _jpeg(index: int) -> bytes:
    return cv2.imencode(".jpg", short_drive()[index].image[..., ::-1])[1].tobytes()


class Road:
    """Frames without end, each with its own stamp; message time never goes back by itself."""

    def __init__(self) -> None:
        self.frames = short_drive()
        self._at = 0
        self.shift = 0  # nanoseconds by which the cameras' clock is off

    def next(self) -> Shot:
        """The next frame of the drive: left, right, left, ..."""
        lap, index = divmod(self._at, len(self.frames))
        self._at += 1
        return self.shot(index, self.stamp(index, lap))

    def next_of(self, camera: str) -> Shot:
        """The next frame of one camera."""
        while (shot := self.next()).camera != camera:
            pass
        return shot

    @property
    def newest(self) -> int:
        """The stamp of the frame that `next` gave last."""
        lap, index = divmod(self._at - 1, len(self.frames))
        return self.stamp(index, lap)

    def fork(self) -> Road:
        """Another traveller, who is here now."""
        other = Road()
        other._at, other.shift = self._at, self.shift
        return other

    def skip_beyond(self, stamp: int) -> None:
        """Drive on until stamps are newer than this."""
        while self.newest <= stamp:
            self._at += 1

    def take(self, count: int) -> Iterator[Shot]:
        return (self.next() for _ in range(count))

    def stamp(self, index: int, lap: int) -> int:
        return BEGIN + lap * LAP + self.frames[index].stamp - self.frames[0].stamp + self.shift

    @property
    def scene(self) -> CameraFrame:
        """The frame that `next` gave last, with its picture and truth."""
        return self.frames[(self._at - 1) % len(self.frames)]

    def next_at(self, stamp: int, camera: str) -> Shot:
        """The next frame of a camera, with a stamp of its own."""
        self.next_of(camera)
        return self.shot((self._at - 1) % len(self.frames), stamp)

    def shot(self, index: int, stamp: int) -> Shot:
        frame = self.frames[index]
        header = Header(stamp, frame.camera)
        if COMPRESSED[frame.camera]:
            image = write_compressed_image(header, _jpeg(index), "jpeg")
        else:
            image = write_image(header, frame.image, "rgb8")
        boxes = boxes_message(header, frame.ids, frame.boxes)
        return Shot(frame.camera, stamp, image, boxes, COMPRESSED[frame.camera])


def boxes_message(header: Header, ids: Sequence[str], boxes: Any) -> bytes:
    """Detections with boxes [n, 4] as cx, cy, w, h."""
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    return write_detections(header, ids, np.insert(boxes, 2, 0.0, axis=1))


def header_of(shot: Shot) -> Header:
    return Header(shot.stamp, shot.camera)


def with_image(shot: Shot, image: bytes) -> Shot:
    """The frame with another image message."""
    return replace(shot, image=image)


def with_boxes(shot: Shot, ids: Sequence[str], boxes: Any) -> Shot:
    """The frame with other boxes."""
    return replace(shot, detections=boxes_message(header_of(shot), ids, boxes))
