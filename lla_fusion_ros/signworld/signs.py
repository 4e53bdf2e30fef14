"""The sixteen sign classes of the sign world, drawn by code."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from lla_fusion_ros.signworld.canvas import Canvas, Point, regular_polygon
from lla_fusion_ros.signworld.lettering import write

WHITE, BLACK, GREY = (244, 245, 240), (24, 24, 28), (150, 152, 150)
RED, BLUE, YELLOW = (196, 24, 34), (18, 84, 172), (250, 196, 20)


def _limit(text: str) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        red_ring(canvas)
        narrow = len(text) > 2
        write(canvas, text, (0, 0), 0.62 if narrow else 0.82, BLACK, weight=0.32)

    return draw


def red_ring(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.93, RED)
    canvas.disc((0, 0), 0.70, WHITE)


def _no_entry(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.93, RED)
    canvas.rectangle(-0.66, -0.16, 0.66, 0.16, WHITE)


def _no_lorries(canvas: Canvas) -> None:
    red_ring(canvas)
    canvas.rectangle(-0.52, -0.26, 0.12, 0.2, BLACK)
    canvas.polygon([(0.17, -0.12), (0.36, -0.12), (0.52, 0.06), (0.52, 0.2), (0.17, 0.2)], BLACK)
    for x in (-0.34, -0.08, 0.36):
        canvas.disc((x, 0.24), 0.12, WHITE)
        canvas.disc((x, 0.24), 0.09, BLACK)


def _stop(canvas: Canvas) -> None:
    canvas.polygon(regular_polygon(8, 1.0, 22.5), WHITE)
    canvas.polygon(regular_polygon(8, 0.94, 22.5), RED)
    write(canvas, "STOP", (0, 0), 0.6, WHITE, weight=0.34)


def _triangle(canvas: Canvas, up: bool = True) -> None:
    tip = -90 if up else 90
    for radius, colour in ((1.0, WHITE), (0.94, RED), (0.62, WHITE)):
        outline = regular_polygon(3, radius, tip)
        lower = 0.2 if up else -0.2  # a triangle's middle lies off the middle of its box
        canvas.polygon([(x, y + lower) for x, y in outline], colour)


def _give_way(canvas: Canvas) -> None:
    _triangle(canvas, up=False)


def _priority_road(canvas: Canvas) -> None:
    for radius, colour in ((1.0, BLACK), (0.96, WHITE), (0.64, BLACK), (0.6, YELLOW)):
        canvas.polygon(regular_polygon(4, radius, -90), colour)


def _danger(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.polygon([(-0.085, -0.2), (0.085, -0.2), (0.05, 0.22), (-0.05, 0.22)], BLACK)
    canvas.disc((0, 0.35), 0.075, BLACK)


def _bend(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.line([(0.1, 0.42), (0.1, 0.22), (-0.08, 0.04), (-0.08, -0.06)], 0.12, BLACK)
    canvas.polygon([(-0.2, -0.02), (0.04, -0.02), (-0.08, -0.22)], BLACK)


def _pedestrians(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.disc((0.02, -0.14), 0.075, BLACK)
    canvas.line([(0.0, -0.02), (-0.02, 0.2)], 0.13, BLACK)
    canvas.line([(-0.02, 0.2), (-0.14, 0.42)], 0.07, BLACK)
    canvas.line([(0.0, 0.2), (0.12, 0.3), (0.14, 0.43)], 0.07, BLACK)
    canvas.line([(0.0, -0.02), (0.16, 0.12)], 0.055, BLACK)
    canvas.line([(0.0, -0.02), (-0.15, 0.12)], 0.055, BLACK)


def _ice(canvas: Canvas) -> None:
    _triangle(canvas)
    for x, y in regular_polygon(6, 0.3, -90):
        canvas.line([(0, 0.16), (x, y + 0.16)], 0.055, BLACK)
        middle = np.array((0.62 * x, 0.62 * y))
        for side in (-1, 1):
            turn = np.arctan2(y, x) + side * 0.8
            tip = middle + 0.12 * np.array((np.cos(turn), np.sin(turn)))
            canvas.line([(middle[0], middle[1] + 0.16), (tip[0], tip[1] + 0.16)], 0.045, BLACK)


def _blue_disc(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.92, BLUE)


def _turn(side: int) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        _blue_disc(canvas)
        stem: list[Point] = [
            (-0.32 * side, 0.55),
            (-0.32 * side, 0.02),
            (-0.2 * side, -0.1),
            (0.15 * side, -0.1),
        ]
        canvas.line(stem, 0.22, WHITE)
        canvas.polygon([(0.12 * side, -0.42), (0.12 * side, 0.22), (0.6 * side, -0.1)], WHITE)

    return draw


def _roundabout(canvas: Canvas) -> None:
    _blue_disc(canvas)
    for start in (0, 120, 240):
        canvas.arc((0, 0), 0.48, (start, start + 70), 0.17, WHITE)
        turn = np.deg2rad(start + 70)
        ahead = np.array((-np.sin(turn), np.cos(turn)))
        out = np.array((np.cos(turn), np.sin(turn)))
        head = [0.48 * out + 0.3 * ahead, 0.74 * out - 0.02 * ahead, 0.22 * out - 0.02 * ahead]
        canvas.polygon([(float(x), float(y)) for x, y in head], WHITE)


def _parking(canvas: Canvas) -> None:
    canvas.rectangle(-0.88, -0.88, 0.88, 0.88, WHITE)
    canvas.rectangle(-0.82, -0.82, 0.82, 0.82, BLUE)
    write(canvas, "P", (0.02, 0), 1.2, WHITE, weight=0.36)


_DESIGNS: dict[str, Callable[[Canvas], None]] = {
    "speed limit 30": _limit("30"),
    "speed limit 50": _limit("50"),
    "speed limit 80": _limit("80"),
    "speed limit 100": _limit("100"),
    "no entry": _no_entry,
    "no lorries": _no_lorries,
    "stop": _stop,
    "give way": _give_way,
    "priority road": _priority_road,
    "danger": _danger,
    "bend": _bend,
    "pedestrians": _pedestrians,
    "ice": _ice,
    "turn left": _turn(-1),
    "turn right": _turn(1),
    "roundabout": _roundabout,
    "parking": _parking,
}

CLASS_NAMES: tuple[str, ...] = tuple(_DESIGNS)
FACE_PIXELS = 192


@lru_cache(maxsize=None)
def sign_face(name: str) -> np.ndarray:
    """The face of a sign, [192, 192, 4] RGBA, colours multiplied by alpha; do not write to it."""
    canvas = Canvas(FACE_PIXELS)
    _DESIGNS[name](canvas)
    return canvas.finish()
