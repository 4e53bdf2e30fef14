"""Small pieces of SVG: numbers, paths, colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from unicodedata import east_asian_width

import numpy as np

from lla_fusion_ros.report.html import escape
from lla_fusion_ros.warnings.result import NOTHING_THERE

# Apart also for the colour-blind (after Okabe and Ito), those of classes not grey; words on them are INK.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a")
CLASS_COLOURS = len(COLOURS) - 1  # the last is that nothing is there
MEANT = {"blue": 0, "orange": 1, "amber": 1, "green": 2, "red": 5, "yellow": 6}  # words of classes
INK = ("#fff", "#000", "#000", "#000", "#000", "#000", "#000", "#fff")


def number(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".") or "0"


def points(xs: Iterable[float], ys: Iterable[float]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in zip(xs, ys, strict=True))


def steps(xs: np.ndarray, ys: np.ndarray, end: float) -> str:
    """The path on which each y holds until the next comes; only where it changes is written."""
    path = f"M{number(xs[0])},{number(ys[0])}"
    before = number(ys[0])
    for x, y in zip(xs[1:], map(number, ys[1:]), strict=True):
        if y != before:
            path += f"H{number(x)}V{y}"
            before = y
    return f"{path}H{number(end)}"


def class_colours(together: Iterable[Sequence[int]], names: Sequence[str] = ()) -> dict[int, int]:
    """For each class one of COLOURS, the same everywhere; classes that are shown together differ, and a red
    light is red.

    Args:
        together: classes that share a chart, the most important first.
    """
    charts = [list(chart) for chart in together]
    weight = Counter(index for chart in charts for index in chart)
    beside: dict[int, Counter[int]] = {index: Counter() for index in weight}
    for chart in charts:
        for index in chart:
            beside[index].update(other for other in chart if other != index)
    colours: dict[int, int] = {}
    for word, colour in MEANT.items():
        meant = [index for index, name in enumerate(names) if word in name.lower().split()]
        if len(meant) == 1 and meant[0] in weight:
            colours[meant[0]] = colour
    colours |= {index: CLASS_COLOURS for index in weight if names and names[index] == NOTHING_THERE}
    for index in sorted(weight.keys() - colours.keys(), key=lambda each: (-weight[each], each)):
        taken: Counter[int] = Counter()
        for other, often in beside[index].items():
            if other in colours:
                taken[colours[other]] += often
        used = Counter(colours.values())
        colours[index] = min(range(CLASS_COLOURS), key=lambda colour: (taken[colour], used[colour], colour))
    return colours


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
