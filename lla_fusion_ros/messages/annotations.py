"""foxglove_msgs/ImageAnnotations: boxes and words that Foxglove draws onto a camera's image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lla_fusion_ros.messages.cdr import NANOSECONDS, CdrWriter

_LINE_LOOP = 2
THICKNESS, LETTERS = 2.0, 14.0  # pixels


class Annotation(NamedTuple):
    """A box with its words; `box` is cx, cy, w, h in pixels, `colour` red, green, blue from 0 to 1."""

    box: tuple[float, float, float, float]
    text: str
    colour: tuple[float, float, float]

    @property
    def corners(self) -> list[tuple[float, float]]:
        """From the upper left one on, clockwise."""
        cx, cy, width, height = self.box
        left, right, top, bottom = cx - width / 2, cx + width / 2, cy - height / 2, cy + height / 2
        return [(left, top), (right, top), (right, bottom), (left, bottom)]

    @property
    def background(self) -> tuple[float, float, float]:
        """Of the words."""
        red, green, blue = self.colour
        return 0.4 * red, 0.4 * green, 0.4 * blue


def write_annotations(stamp: int, annotations: Sequence[Annotation]) -> bytes:
    """Of the image with that stamp."""
    writer = CdrWriter()
    writer.u32(0)  # circles
    writer.u32(len(annotations))
    for each in annotations:
        _stamp(writer, stamp)
        writer.u8(_LINE_LOOP)
        writer.u32(4)
        _doubles(writer, *(number for corner in each.corners for number in corner))
        _doubles(writer, *each.colour, 1.0)
        writer.u32(0)  # colours of single points
        _doubles(writer, *each.colour, 0.0, THICKNESS)  # filled with nothing
    writer.u32(len(annotations))
    for each in annotations:
        _stamp(writer, stamp)
        _doubles(writer, *each.corners[0])
        writer.string(each.text)
        _doubles(writer, LETTERS, 1.0, 1.0, 1.0, 1.0, *each.background, 0.8)
    return writer.message()


def _stamp(writer: CdrWriter, stamp: int) -> None:
    seconds, nanoseconds = divmod(stamp, NANOSECONDS)
    writer.i32(seconds)
    writer.u32(nanoseconds)


def _doubles(writer: CdrWriter, *values: float) -> None:
    writer.align(8)
    writer.raw(np.array(values, "<f8").tobytes())
