"""A drawing surface for signs and scenery: shapes and letters in, a smooth picture with transparency out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cv2
import numpy as np

Point = tuple[float, float]
Colour = tuple[int, int, int]

_SUPERSAMPLING = 4

# A stroke is a line (points) or an arc (centre, radius, from and to degrees) in a box one wide and two high.
_Line = tuple[Point, ...]
_Arc = tuple[Point, float, tuple[float, float]]

_LINES: dict[str, tuple[_Line, ...]] = {
    "0": (((-0.5, -0.5), (-0.5, 0.5)), ((0.5, -0.5), (0.5, 0.5))),
    "1": (((-0.35, -0.62), (0.1, -1.0), (0.1, 1.0)),),
    "3": (((-0.05, -0.08), (0.08, -0.08)),),
    "5": (((0.42, -1.0), (-0.38, -1.0), (-0.46, -0.12)),),
    "8": (),
    "S": (),
    "T": (((-0.5, -1.0), (0.5, -1.0)), ((0.0, -1.0), (0.0, 1.0))),
    "O": (((-0.5, -0.5), (-0.5, 0.5)), ((0.5, -0.5), (0.5, 0.5))),
    "P": (((-0.45, 1.0), (-0.45, -1.0), (0.02, -1.0)), ((-0.45, 0.08), (0.02, 0.08))),
}
_ARCS: dict[str, tuple[_Arc, ...]] = {
    "0": (((0.0, -0.5), 0.5, (180, 360)), ((0.0, 0.5), 0.5, (0, 180))),
    "3": (((0.0, -0.54), 0.46, (190, 450)), ((0.0, 0.46), 0.54, (-90, 165))),
    "5": (((-0.02, 0.44), 0.56, (-135, 150)),),
    "8": (((0.0, -0.54), 0.45, (0, 360)), ((0.0, 0.46), 0.54, (0, 360))),
    "S": (((0.0, -0.5), 0.5, (90, 330)), ((0.0, 0.5), 0.5, (-90, 150))),
    "O": (((0.0, -0.5), 0.5, (180, 360)), ((0.0, 0.5), 0.5, (0, 180))),
    "P": (((0.02, -0.46), 0.54, (-90, 90)),),
}


class Canvas:
    """Shapes in the square -1..1 (x right, y down), drawn large without antialiasing and shrunk at the end.

    Every pixel is either clear or solid while drawing, so the shrunk picture has its colours multiplied by
    its alpha already, which is what compositing wants.
    """

    def __init__(self, width: int, height: int | None = None) -> None:
        self._size = (width, height or width)
        self._scale = width * _SUPERSAMPLING / 2
        self._pixels = np.zeros((self._size[1] * _SUPERSAMPLING, width * _SUPERSAMPLING, 4), np.uint8)

    @property
    def bottom(self) -> float:
        """The largest y; 1 where the canvas is square."""
        return 2 * self._size[1] / self._size[0] - 1

    def polygon(self, points: Iterable[Point], colour: Colour) -> None:
        cv2.fillPoly(self._pixels, [self._place(points)], (*colour, 255))

    def rectangle(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        self.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        self.ellipse(centre, (radius, radius), colour)

    def ellipse(self, centre: Point, radii: tuple[float, float], colour: Colour) -> None:
        place = (round((centre[0] + 1) * self._scale), round((centre[1] + 1) * self._scale))
        axes = (round(radii[0] * self._scale), round(radii[1] * self._scale))
        cv2.ellipse(self._pixels, place, axes, 0, 0, 360, (*colour, 255), cv2.FILLED)

    def line(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """A line with round ends and joints."""
        thickness = max(1, round(width * self._scale))
        cv2.polylines(self._pixels, [self._place(points)], False, (*colour, 255), thickness)

    def arc(
        self, centre: Point, radius: float, degrees: tuple[float, float], width: float, colour: Colour
    ) -> None:
        """Part of a circle; 0 degrees points right and 90 down."""
        turn = np.deg2rad(np.linspace(*degrees, 40))
        points = zip(centre[0] + radius * np.cos(turn), centre[1] + radius * np.sin(turn), strict=True)
        self.line(list(points), width, colour)

    def finish(self) -> np.ndarray:
        """[height, width, 4] uint8 RGBA, colours multiplied by alpha."""
        return cv2.resize(self._pixels, self._size, interpolation=cv2.INTER_AREA)

    def _place(self, points: Iterable[Point]) -> np.ndarray:
        return np.rint((np.array(list(points)) + 1) * self._scale).astype(np.int32)


def regular_polygon(corners: int, radius: float, first_degrees: float) -> list[Point]:
    """Corners of a regular polygon about the middle; the first one lies in the given direction."""
    turn = np.deg2rad(first_degrees + np.arange(corners) * 360 / corners)
    return list(zip(radius * np.cos(turn), radius * np.sin(turn), strict=True))


def write(
    canvas: Canvas, text: str, centre: Point, height: float, colour: Colour, weight: float = 0.3
) -> None:
    """Write `text` about `centre`; `weight` is the stroke's width in letter widths."""
    scale = height / (2 + weight)
    advance = (1 + weight + 0.26) * scale
    for number, letter in enumerate(text):
        x = centre[0] + (number - (len(text) - 1) / 2) * advance
        for points in _LINES[letter]:
            canvas.line(
                [(x + px * scale, centre[1] + py * scale) for px, py in points], weight * scale, colour
            )
        for (px, py), radius, degrees in _ARCS.get(letter, ()):
            middle = (x + px * scale, centre[1] + py * scale)
            canvas.arc(middle, radius * scale, degrees, weight * scale, colour)
