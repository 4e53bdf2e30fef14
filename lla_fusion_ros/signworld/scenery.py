"""Pictures of the things along the road that are no signs: trees, bushes, houses, vans, posts."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.signworld.canvas import Canvas, Colour


def draw_scenery(kind: str, rng: np.random.Generator) -> np.ndarray:
    """RGBA with colours multiplied by alpha; the object stands on the lower edge."""
    drawing = {
        "tree": _tree,
        "conifer": _conifer,
        "bush": _bush,
        "house": _house,
        "van": _van,
        "post": _post,
        "lamp": _lamp,
    }
    return drawing[kind](rng)


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (max(0, min(255, int(channel * factor))) for channel in colour)
    return red, green, blue


def _leaves(
    canvas: Canvas, rng: np.random.Generator, middle: tuple[float, float], radii: tuple[float, float]
) -> None:
    """A crown of many small clumps, darker below and at the left, lighter where the sun stands."""
    hue = (int(rng.integers(52, 92)), int(rng.integers(98, 128)), int(rng.integers(34, 60)))
    count = 420
    turn, reach = rng.uniform(0, 2 * np.pi, count), np.sqrt(rng.uniform(0, 1, count))
    wobble = 1 + 0.12 * np.sin(3 * turn + rng.uniform(0, 6)) + 0.08 * np.sin(5 * turn + rng.uniform(0, 6))
    x = middle[0] + radii[0] * reach * wobble * np.cos(turn)
    y = middle[1] + radii[1] * reach * wobble * np.sin(turn)
    light = 0.78 - 0.34 * (y - middle[1]) / radii[1] + 0.16 * (x - middle[0]) / radii[0]
    order = np.argsort(light + rng.normal(0, 0.22, count))
    size = rng.uniform(0.05, 0.13, count) * radii[0] / 0.8
    tone = light + rng.normal(0, 0.08, count)
    for i in order.tolist():
        canvas.ellipse((x[i], y[i]), (size[i], 0.8 * size[i]), _shade(hue, tone[i]))


def _tree(rng: np.random.Generator) -> np.ndarray:
    canvas = Canvas(200, 260)
    bark = (84, 66, 50)
    canvas.polygon([(-0.07, 0.4), (0.07, 0.4), (0.11, canvas.bottom), (-0.11, canvas.bottom)], bark)
    canvas.polygon(
        [(-0.07, 0.4), (-0.01, 0.4), (-0.04, canvas.bottom), (-0.11, canvas.bottom)], _shade(bark, 0.7)
    )
    _leaves(canvas, rng, (0.0, -0.12), (0.76, 0.72))
    return canvas.finish()


def _conifer(rng: np.random.Generator) -> np.ndarray:
    canvas = Canvas(140, 260)
    canvas.rectangle(-0.07, 2.2, 0.07, canvas.bottom, (74, 56, 44))
    green = (int(rng.integers(32, 50)), int(rng.integers(72, 92)), int(rng.integers(44, 60)))
    for level in np.linspace(2.35, -0.9, 26):
        half = 0.06 + 0.8 * (level + 1.0) / 3.4
        for _ in range(9):
            x = rng.uniform(-half, half)
            tone = _shade(green, 0.85 + 0.35 * x / max(half, 0.1) + rng.normal(0, 0.1))
            droop = 0.16 + 0.08 * rng.random()
            canvas.polygon([(x, level - 0.14), (x - 0.13, level + droop), (x + 0.13, level + droop)], tone)
    return canvas.finish()


def _bush(rng: np.random.Generator) -> np.ndarray:
    canvas = Canvas(180, 110)
    for x, size in ((-0.42, 0.46), (0.4, 0.5), (0.0, 0.62)):
        _leaves(canvas, rng, (x, 0.62 - size), (size, size * 0.85))
    return canvas.finish()


def _house(rng: np.random.Generator) -> np.ndarray:
    canvas = Canvas(320, 260)
    walls = ((226, 214, 190), (206, 196, 186), (222, 190, 150), (190, 120, 96), (214, 218, 220))
    roofs = ((150, 70, 54), (92, 88, 92), (120, 84, 66))
    wall, roof = walls[int(rng.integers(len(walls)))], roofs[int(rng.integers(len(roofs)))]
    low = canvas.bottom
    canvas.rectangle(-0.86, -0.3, 0.86, low, wall)
    canvas.rectangle(-0.86, -0.3, -0.6, low, _shade(wall, 0.9))
    canvas.polygon([(-0.97, -0.28), (-0.66, -0.92), (0.66, -0.92), (0.97, -0.28)], roof)
    canvas.polygon([(-0.97, -0.28), (-0.95, -0.33), (0.95, -0.33), (0.97, -0.28)], _shade(roof, 0.7))
    canvas.rectangle(0.3, -1.0, 0.44, -0.7, _shade(roof, 0.8))
    for y in (-0.16, 0.24):
        for x in np.linspace(-0.7, 0.46, 4):
            if y > 0 and 0.1 < x < 0.2:
                continue
            canvas.rectangle(x - 0.02, y - 0.02, x + 0.22, y + 0.26, (238, 238, 234))
            canvas.rectangle(x, y, x + 0.2, y + 0.24, _shade((96, 116, 136), float(rng.uniform(0.6, 1.2))))
            canvas.rectangle(x + 0.09, y, x + 0.11, y + 0.24, (238, 238, 234))
    canvas.rectangle(-0.06, 0.24, 0.12, low, (98, 66, 48))
    return canvas.finish()


def _van(rng: np.random.Generator) -> np.ndarray:
    """A parked van from behind."""
    canvas = Canvas(170, 190)
    paints = ((228, 228, 226), (60, 84, 120), (150, 44, 40), (64, 66, 70), (196, 170, 90))
    paint = paints[int(rng.integers(len(paints)))]
    low = canvas.bottom
    for x in (-0.74, 0.5):
        canvas.rectangle(x, low - 0.28, x + 0.24, low, (26, 26, 28))
    canvas.polygon(
        [(-0.8, -0.8), (0.8, -0.8), (0.9, -0.6), (0.92, low - 0.16), (-0.92, low - 0.16), (-0.9, -0.6)], paint
    )
    canvas.rectangle(-0.92, low - 0.34, 0.92, low - 0.14, _shade(paint, 0.62))
    canvas.line([(0, -0.76), (0, low - 0.36)], 0.02, _shade(paint, 0.6))
    for side in (-1, 1):
        canvas.polygon(
            [(0.1 * side, -0.64), (0.74 * side, -0.64), (0.78 * side, -0.1), (0.1 * side, -0.1)], (52, 64, 76)
        )
        canvas.rectangle(min(0.8 * side, 0.91 * side), 0.1, max(0.8 * side, 0.91 * side), 0.6, (190, 30, 28))
    canvas.rectangle(-0.24, low - 0.52, 0.24, low - 0.4, (236, 234, 220))
    return canvas.finish()


def _post(rng: np.random.Generator) -> np.ndarray:
    """A white marker post with a black band."""
    canvas = Canvas(30, 200)
    canvas.polygon([(-0.5, -0.4), (0.5, -0.9), (0.6, canvas.bottom), (-0.6, canvas.bottom)], (232, 232, 228))
    canvas.polygon([(-0.53, 1.4), (0.53, 0.4), (0.55, 2.9), (-0.55, 3.9)], (28, 28, 30))
    canvas.rectangle(-0.2, 1.6, 0.2, 2.8, (230, 150, 60))
    return canvas.finish()


def _lamp(rng: np.random.Generator) -> np.ndarray:
    canvas = Canvas(90, 420)
    metal = (120, 124, 126)
    canvas.line([(0.7, canvas.bottom), (0.7, -0.3), (0.4, -0.72), (-0.5, -0.8)], 0.09, metal)
    canvas.line([(0.73, canvas.bottom), (0.73, -0.2)], 0.03, (160, 164, 166))
    canvas.polygon([(-0.95, -0.8), (-0.3, -0.92), (-0.25, -0.72), (-0.9, -0.68)], (170, 172, 172))
    return canvas.finish()
