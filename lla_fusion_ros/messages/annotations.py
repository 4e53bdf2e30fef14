"""foxglove_msgs/ImageAnnotations: boxes and words that Foxglove draws onto a camera's image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lla_fusion_ros.messages.cdr import NANOSECONDS, CdrWriter

_LINE_LOOP = 2
_THICKNESS, _LETTERS = 2.0, 14.0  # pixels


class Annotation(NamedTuple):
    """A box with its words; `box` is cx, cy, w, h in pixels, `colour` red, green, blue from 0 to 1."""

    box: tuple[float, float, float, float]
    text: str
    colour: tuple[float, float, float]


def write_annotations(stamp: int, annotations: Sequence[Annotation]) -> bytes:
    """Of the image with that stamp."""
    writer = CdrWriter()
    writer.u32(0)  # circles
    writer.u32(len(annotations))
    for each in annotations:
        cx, cy, width, height = each.box
        left, right, top, bottom = cx - width / 2, cx + width / 2, cy - height / 2, cy + height / 2
        _stamp(writer, stamp)
        writer.u8(_LINE_LOOP)
        writer.u32(4)
        _doubles(writer, left, top, right, top, right, bottom, left, bottom)
        _doubles(writer, *each.colour, 1.0)
        writer.u32(0)  # colours of single points
        _doubles(writer, *each.colour, 0.0, _THICKNESS)  # filled with nothing
    writer.u32(len(annotations))
    for each in annotations:
        cx, cy, width, height = each.box
        _stamp(writer, stamp)
        _doubles(writer, cx - width / 2, cy - height / 2)
        writer.string(each.text)
        _doubles(writer, _LETTERS, 1.0, 1.0, 1.0, 1.0, *(part * 0.4 for part in each.colour), 0.8)
    return writer.message()


def _stamp(writer: CdrWriter, stamp: int) -> None:
    seconds, nanoseconds = divmod(stamp, NANOSECONDS)
    writer.i32(seconds)
    writer.u32(nanoseconds)


def _doubles(writer: CdrWriter, *values: float) -> None:
    writer.align(8)
    writer.raw(np.array(values, "<f8").tobytes())
