"""Small pieces of SVG: numbers, paths, colours."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from unicodedata import east_asian_width

import numpy as np

_GOLDEN_ANGLE = 137.508


def number(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".") or "0"


def points(xs: Iterable[float], ys: Iterable[float]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in zip(xs, ys, strict=True))


def area(xs: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """The path between two curves over the same x."""
    there = points(xs, high).replace(" ", "L")
    back = points(xs[::-1], low[::-1]).replace(" ", "L")
    return f"M{there}L{back}Z"


def steps(xs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value holds until the next comes: the corners of that curve.   values [points, ...]"""
    return np.repeat(xs, 2)[1:], np.repeat(values, 2, axis=0)[:-1]


def class_colour(index: int) -> str:
    """A colour of its own for each class, readable on light and dark ground."""
    hue = (18 + index * _GOLDEN_ANGLE) % 360
    lightness = (54, 46, 62)[index % 3]
    return f"hsl({hue:.0f} 62% {lightness}%)"


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{number(x)}" y="{number(y)}" class="{css}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def text_width(words: str) -> float:
    """About how wide the words are in an axis label; letters of Asian scripts take twice the room."""
    return sum(12.0 if east_asian_width(letter) in "WF" else 6.4 for letter in words)


def rect(x: float, y: float, width: float, height: float, attributes: str) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0.5))}" '
        f'height="{number(height)}" {attributes}/>'
    )


def nice_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers within a range."""
    span = max(high - low, 1e-9)
    raw = span / most
    magnitude = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw)
    return [float(value) for value in np.arange(np.ceil(low / step) * step, high + step * 1e-6, step)]
