"""Seventeen signs, the states of a traffic light, and objects that belong to no class, all drawn by code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lla_fusion_ros.signworld.canvas import Canvas, Point, regular_polygon, write

WHITE, BLACK = (244, 245, 240), (24, 24, 28)
RED, BLUE, YELLOW = (196, 24, 34), (18, 84, 172), (250, 196, 20)
PURPLE, GREEN, ORANGE, BROWN = (118, 42, 150), (24, 140, 76), (240, 128, 20), (122, 72, 36)


def _limit(text: str) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        _red_ring(canvas)
        narrow = len(text) > 2
        write(canvas, text, (0, 0), 0.62 if narrow else 0.82, BLACK, weight=0.32)

    return draw


def _red_ring(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.93, RED)
    canvas.disc((0, 0), 0.70, WHITE)


def _no_entry(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.93, RED)
    canvas.rectangle(-0.66, -0.16, 0.66, 0.16, WHITE)


def _no_lorries(canvas: Canvas) -> None:
    _red_ring(canvas)
    canvas.rectangle(-0.52, -0.26, 0.12, 0.2, BLACK)
    canvas.polygon([(0.17, -0.12), (0.36, -0.12), (0.52, 0.06), (0.52, 0.2), (0.17, 0.2)], BLACK)
    for x in (-0.34, -0.08, 0.36):
        canvas.disc((x, 0.24), 0.12, WHITE)
        canvas.disc((x, 0.24), 0.09, BLACK)


def _stop(canvas: Canvas) -> None:
    canvas.polygon(regular_polygon(8, 1.0, 22.5), WHITE)
    canvas.polygon(regular_polygon(8, 0.94, 22.5), RED)
    write(canvas, "STOP", (0, 0), 0.58, WHITE, weight=0.34)


def _triangle(canvas: Canvas, up: bool = True) -> None:
    tip = -90 if up else 90
    lower = 0.28 if up else -0.28  # a triangle's middle lies off the middle of its box
    for radius, colour in ((1.12, WHITE), (1.05, RED), (0.7, WHITE)):
        canvas.polygon([(x, y + lower) for x, y in regular_polygon(3, radius, tip)], colour)


def _give_way(canvas: Canvas) -> None:
    _triangle(canvas, up=False)


def _priority_road(canvas: Canvas) -> None:
    for radius, colour in ((1.0, BLACK), (0.96, WHITE), (0.64, BLACK), (0.6, YELLOW)):
        canvas.polygon(regular_polygon(4, radius, -90), colour)


def _danger(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.polygon([(-0.1, -0.17), (0.1, -0.17), (0.06, 0.3), (-0.06, 0.3)], BLACK)
    canvas.disc((0, 0.45), 0.09, BLACK)


def _bend(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.line([(0.12, 0.52), (0.12, 0.32), (-0.09, 0.12), (-0.09, 0.02)], 0.14, BLACK)
    canvas.polygon([(-0.23, 0.05), (0.05, 0.05), (-0.09, -0.19)], BLACK)


def _pedestrians(canvas: Canvas) -> None:
    _triangle(canvas)
    canvas.disc((0.02, -0.08), 0.09, BLACK)
    canvas.line([(0.0, 0.07), (-0.02, 0.3)], 0.16, BLACK)
    canvas.line([(-0.02, 0.3), (-0.17, 0.54)], 0.085, BLACK)
    canvas.line([(0.0, 0.3), (0.14, 0.4), (0.17, 0.55)], 0.085, BLACK)
    canvas.line([(0.0, 0.06), (0.2, 0.22)], 0.065, BLACK)
    canvas.line([(0.0, 0.06), (-0.19, 0.22)], 0.065, BLACK)


def _ice(canvas: Canvas) -> None:
    _triangle(canvas)
    centre = np.array((0.0, 0.26))
    for degrees in range(0, 360, 60):
        branch = _direction(degrees + 30)
        canvas.line([_point(centre), _point(centre + 0.34 * branch)], 0.065, BLACK)
        for side in (-45, 45):
            fork = centre + 0.2 * branch
            canvas.line([_point(fork), _point(fork + 0.13 * _direction(degrees + 30 + side))], 0.05, BLACK)


def _direction(degrees: float) -> np.ndarray:
    return np.array((np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))))


def _point(place: np.ndarray) -> Point:
    return float(place[0]), float(place[1])


def _blue_disc(canvas: Canvas) -> None:
    canvas.disc((0, 0), 0.97, WHITE)
    canvas.disc((0, 0), 0.92, BLUE)


def _turn(side: int) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        _blue_disc(canvas)
        stem = [(x * side, y) for x, y in ((-0.32, 0.55), (-0.32, 0.02), (-0.2, -0.1), (0.15, -0.1))]
        canvas.line(stem, 0.22, WHITE)
        canvas.polygon([(0.12 * side, -0.42), (0.12 * side, 0.22), (0.6 * side, -0.1)], WHITE)

    return draw


def _roundabout(canvas: Canvas) -> None:
    _blue_disc(canvas)
    for start in (0, 120, 240):
        canvas.arc((0, 0), 0.48, (start, start + 70), 0.17, WHITE)
        out, ahead = _direction(start + 70), _direction(start + 160)
        head = (0.48 * out + 0.3 * ahead, 0.74 * out - 0.02 * ahead, 0.22 * out - 0.02 * ahead)
        canvas.polygon([_point(corner) for corner in head], WHITE)


def _parking(canvas: Canvas) -> None:
    canvas.rectangle(-0.88, -0.88, 0.88, 0.88, WHITE)
    canvas.rectangle(-0.82, -0.82, 0.82, 0.82, BLUE)
    write(canvas, "P", (0.02, 0), 1.2, WHITE, weight=0.36)


_SIGNS: dict[str, Callable[[Canvas], None]] = {
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


def _star(canvas: Canvas) -> None:
    canvas.polygon(regular_polygon(6, 0.98, 0), WHITE)
    canvas.polygon(regular_polygon(6, 0.9, 0), PURPLE)
    outer, inner = regular_polygon(5, 0.62, -90), regular_polygon(5, 0.26, -54)
    canvas.polygon([corner for pair in zip(outer, inner, strict=True) for corner in pair], WHITE)


def _charging(canvas: Canvas) -> None:
    canvas.rectangle(-0.84, -0.84, 0.84, 0.84, WHITE)
    canvas.rectangle(-0.77, -0.77, 0.77, 0.77, GREEN)
    bolt = [(0.16, -0.64), (-0.4, 0.1), (-0.04, 0.1), (-0.16, 0.64), (0.4, -0.12), (0.04, -0.12)]
    canvas.polygon(bolt, WHITE)


def _fish(canvas: Canvas) -> None:
    _red_ring(canvas)
    canvas.ellipse((-0.08, 0), (0.36, 0.19), BLACK)
    canvas.polygon([(0.2, 0), (0.5, -0.22), (0.5, 0.22)], BLACK)
    canvas.disc((-0.26, -0.04), 0.045, WHITE)


def _chevrons(canvas: Canvas) -> None:
    canvas.rectangle(-0.95, -0.6, 0.95, 0.6, BLACK)
    for x in (-0.75, -0.15, 0.45):
        arrow = [(x, -0.5), (x + 0.22, -0.5), (x + 0.46, 0), (x + 0.22, 0.5), (x, 0.5), (x + 0.24, 0)]
        canvas.polygon(arrow, ORANGE)


def _castle(canvas: Canvas) -> None:
    canvas.rectangle(-0.95, -0.72, 0.95, 0.72, WHITE)
    canvas.rectangle(-0.89, -0.66, 0.89, 0.66, BROWN)
    canvas.rectangle(-0.5, -0.1, 0.5, 0.46, WHITE)
    for x in (-0.6, 0.3):
        canvas.rectangle(x, -0.34, x + 0.3, 0.46, WHITE)
        canvas.polygon([(x - 0.04, -0.34), (x + 0.34, -0.34), (x + 0.15, -0.58)], WHITE)
    canvas.rectangle(-0.12, 0.12, 0.12, 0.46, BROWN)


def _balloon(canvas: Canvas) -> None:
    canvas.ellipse((0, -0.2), (0.62, 0.74), (222, 60, 110))
    canvas.ellipse((-0.2, -0.44), (0.14, 0.2), (240, 150, 180))
    canvas.polygon([(-0.09, 0.66), (0.09, 0.66), (0, 0.5)], (170, 30, 76))
    canvas.line([(0, 0.64), (0.05, 0.8), (-0.03, 0.97)], 0.03, (90, 90, 90))


_OUTSIDE: dict[str, Callable[[Canvas], None]] = {
    "star board": _star,
    "charging point": _charging,
    "no fishing": _fish,
    "chevron board": _chevrons,
    "castle board": _castle,
    "balloon": _balloon,
}


def _light(lit: int, colour: tuple[int, int, int]) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        canvas.rectangle(-0.42, -0.97, 0.42, 0.97, BLACK)
        for lamp in range(3):
            canvas.disc((0, 0.62 * (lamp - 1)), 0.26, colour if lamp == lit else (58, 58, 62))

    return draw


_LIGHTS: dict[str, Callable[[Canvas], None]] = {
    "red light": _light(0, (250, 40, 40)),
    "yellow light": _light(1, (255, 190, 30)),
    "green light": _light(2, (40, 235, 120)),
}

SIGN_NAMES: tuple[str, ...] = tuple(_SIGNS)
LIGHT_NAMES: tuple[str, ...] = tuple(_LIGHTS)  # of one light after the other: these change under one id
CLASS_NAMES: tuple[str, ...] = (*SIGN_NAMES, *LIGHT_NAMES)
OUTSIDE_KINDS: tuple[str, ...] = tuple(_OUTSIDE)
FALSE_DETECTION = "false detection"  # a box where there is nothing but scenery
FACE_PIXELS = 192


@cache
def face_of(name: str) -> np.ndarray:
    """The face of a class or of a kind of object outside the classes; do not write to it.

    [192, 192, 4] RGBA, colours multiplied by alpha
    """
    canvas = Canvas(FACE_PIXELS)
    {**_SIGNS, **_LIGHTS, **_OUTSIDE}[name](canvas)
    return canvas.finish()
