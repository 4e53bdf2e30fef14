"""Digits and letters as thick strokes with round ends, in the manner of road signs."""

from __future__ import annotations

from lla_fusion_ros.signworld.canvas import Canvas, Colour, Point

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
