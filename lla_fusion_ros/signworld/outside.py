"""Objects beside the road that belong to no class: what the warnings are for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lla_fusion_ros.signworld.canvas import Canvas, regular_polygon
from lla_fusion_ros.signworld.signs import BLACK, FACE_PIXELS, WHITE, red_ring

_PURPLE, _GREEN, _ORANGE, _BROWN = (118, 42, 150), (24, 140, 76), (240, 128, 20), (122, 72, 36)


def _star(canvas: Canvas) -> None:
    canvas.polygon(regular_polygon(6, 0.98, 0), WHITE)
    canvas.polygon(regular_polygon(6, 0.9, 0), _PURPLE)
    outer, inner = regular_polygon(5, 0.62, -90), regular_polygon(5, 0.26, -54)
    canvas.polygon([corner for pair in zip(outer, inner, strict=True) for corner in pair], WHITE)


def _charging(canvas: Canvas) -> None:
    canvas.rectangle(-0.84, -0.84, 0.84, 0.84, WHITE)
    canvas.rectangle(-0.77, -0.77, 0.77, 0.77, _GREEN)
    bolt = [(0.16, -0.64), (-0.4, 0.1), (-0.04, 0.1), (-0.16, 0.64), (0.4, -0.12), (0.04, -0.12)]
    canvas.polygon(bolt, WHITE)


def _fish(canvas: Canvas) -> None:
    red_ring(canvas)
    canvas.ellipse((-0.08, 0), (0.36, 0.19), BLACK)
    canvas.polygon([(0.2, 0), (0.5, -0.22), (0.5, 0.22)], BLACK)
    canvas.disc((-0.26, -0.04), 0.045, WHITE)


def _chevrons(canvas: Canvas) -> None:
    canvas.rectangle(-0.95, -0.6, 0.95, 0.6, BLACK)
    for x in (-0.75, -0.15, 0.45):
        arrow = [(x, -0.5), (x + 0.22, -0.5), (x + 0.46, 0), (x + 0.22, 0.5), (x, 0.5), (x + 0.24, 0)]
        canvas.polygon(arrow, _ORANGE)


def _castle(canvas: Canvas) -> None:
    canvas.rectangle(-0.95, -0.72, 0.95, 0.72, WHITE)
    canvas.rectangle(-0.89, -0.66, 0.89, 0.66, _BROWN)
    canvas.rectangle(-0.5, -0.1, 0.5, 0.46, WHITE)
    for x in (-0.6, 0.3):
        canvas.rectangle(x, -0.34, x + 0.3, 0.46, WHITE)
        canvas.polygon([(x - 0.04, -0.34), (x + 0.34, -0.34), (x + 0.15, -0.58)], WHITE)
    canvas.rectangle(-0.12, 0.12, 0.12, 0.46, _BROWN)


def _balloon(canvas: Canvas) -> None:
    canvas.ellipse((0, -0.2), (0.62, 0.74), (222, 60, 110))
    canvas.ellipse((-0.2, -0.44), (0.14, 0.2), (240, 150, 180))
    canvas.polygon([(-0.09, 0.66), (0.09, 0.66), (0, 0.5)], (170, 30, 76))
    canvas.line([(0, 0.64), (0.05, 0.8), (-0.03, 0.97)], 0.03, (90, 90, 90))


_DESIGNS: dict[str, Callable[[Canvas], None]] = {
    "star board": _star,
    "charging point": _charging,
    "no fishing": _fish,
    "chevron board": _chevrons,
    "castle board": _castle,
    "balloon": _balloon,
}

OUTSIDE_KINDS: tuple[str, ...] = tuple(_DESIGNS)


@cache
def outside_face(kind: str) -> np.ndarray:
    """The face of an object outside the classes, as `sign_face`."""
    canvas = Canvas(FACE_PIXELS)
    _DESIGNS[kind](canvas)
    return canvas.finish()
