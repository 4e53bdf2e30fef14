"""Draws what is known about a frame onto its image: boxes, class bars, warning badges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.types.pmf import percent

Colour = tuple[int, int, int]  # blue, green, red
_SURE: Colour = (80, 200, 60)
_UNSURE: Colour = (60, 190, 240)
_ALARM: Colour = (50, 50, 230)
_INK: Colour = (245, 245, 245)
_PAPER: Colour = (30, 30, 30)
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_SURE_ABOVE = 0.8
_LEAST_SHOWN = 0.01


class Rectangle(NamedTuple):
    """Whole pixels: left, top, width, height."""

    x: int
    y: int
    width: int
    height: int

    def overlaps(self, other: Rectangle) -> bool:
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True, slots=True)
class Label:
    """What to draw for one object.

    Attributes:
        box: cx, cy, w, h in pixels.
        title: shown first, such as the track id.
        classes: names and probabilities, surest first; one bar each.
        warning: text of the badge; empty for none.
        grave: it is an alarm; else only nothing is sure.
    """

    box: tuple[float, float, float, float]
    title: str
    classes: tuple[tuple[str, float], ...]
    warning: str = ""
    grave: bool = True


def to_bgr8(pixels: Pixels) -> np.ndarray:
    """A copy of the image that can be drawn on.  [height, width, 3] uint8 BGR"""
    array = pixels.array
    if array.dtype != np.uint8:
        array = (array >> 8).astype(np.uint8)
    if pixels.order == "mono":
        return np.repeat(array[..., None], 3, axis=2)
    return np.array(array[..., ::-1] if pixels.order == "rgb" else array, order="C")


def draw_labels(image: np.ndarray, labels: Sequence[Label]) -> None:
    """Draw onto a BGR image, in place; text grows with the image, panels keep out of each other's way."""
    scale = float(np.clip(image.shape[0] / 720, 0.35, 2.0))
    taken: list[Rectangle] = []
    nearest_first = sorted(labels, key=lambda label: -label.box[2] * label.box[3])
    for label in nearest_first:
        _draw_box(image, label, scale)
        taken.append(_outline(label))
    for label in nearest_first:
        panel = _free_place(image, label, scale, taken)
        taken.append(panel)
        _draw_panel(image, label, panel, scale)


def _outline(label: Label) -> Rectangle:
    cx, cy, width, height = label.box
    return Rectangle(int(cx - width / 2), int(cy - height / 2), int(width), int(height))


def _draw_box(image: np.ndarray, label: Label, scale: float) -> None:
    box = _outline(label)
    corner = (box.x + box.width, box.y + box.height)
    cv2.rectangle(image, (box.x, box.y), corner, _colour(label), max(1, round(2 * scale)), cv2.LINE_AA)


def _free_place(image: np.ndarray, label: Label, scale: float, taken: Sequence[Rectangle]) -> Rectangle:
    """The place for a label's panel that is nearest to its box and covers nothing that is drawn already."""
    rows, columns = image.shape[:2]
    box, line = _outline(label), round(22 * scale)
    width = round(190 * scale)
    height = line * (1 + len(_shown(label)) + bool(label.warning))
    beside = [
        (box.x, box.y + box.height + 2),
        (box.x, box.y - height - 2),
        (box.x + box.width + 2, box.y),
        (box.x - width - 2, box.y),
    ]
    further = [(x, y + step * line) for step in range(1, 40) for x, y in (beside[0], beside[1])]
    further += [(x, y - step * line) for step in range(1, 40) for x, y in (beside[0], beside[1])]
    further.sort(key=lambda place: abs(place[1] - box.y))
    places = [
        Rectangle(
            min(max(x, 0), max(columns - width, 0)), min(max(y, 0), max(rows - height, 0)), width, height
        )
        for x, y in beside + further
    ]
    return next((place for place in places if not any(place.overlaps(other) for other in taken)), places[0])


def _draw_panel(image: np.ndarray, label: Label, panel: Rectangle, scale: float) -> None:
    line, colour, box = round(22 * scale), _colour(label), _outline(label)
    if abs(panel.y - box.y) > box.height + panel.height + line:  # far from its box: show where it belongs
        foot = (panel.x + 4, panel.y if panel.y > box.y else panel.y + panel.height)
        cv2.line(image, foot, (box.x, box.y + box.height // 2), colour, 1, cv2.LINE_AA)
    _shade(image, panel)
    _write(image, label.title, panel.x, panel.y, line, scale, colour)
    for row, (name, probability) in enumerate(_shown(label), start=1):
        bar = round((panel.width - 4) * float(np.clip(probability, 0, 1)))
        at = panel.y + row * line
        left = panel.x + 2
        cv2.rectangle(image, (left, at + 3), (left + bar, at + line - 2), _darker(colour), cv2.FILLED)
        _write(image, f"{percent(probability):>4} {name}", panel.x, at, line, scale, _INK)
    if label.warning:
        at = panel.y + panel.height - line
        cv2.rectangle(image, (panel.x, at), (panel.x + panel.width, at + line), colour, cv2.FILLED)
        mark, ink = ("!", _INK) if label.grave else ("?", _PAPER)
        _write(image, f"{mark} {label.warning}", panel.x, at, line, scale, ink)


def _shown(label: Label) -> tuple[tuple[str, float], ...]:
    """The classes worth a bar: the surest, and others that are not next to impossible."""
    return label.classes[:1] + tuple(entry for entry in label.classes[1:] if entry[1] >= _LEAST_SHOWN)


def colour_of(probability: float, warned: bool, grave: bool = True) -> Colour:
    """Of an object's box."""
    if warned:
        return _ALARM if grave else _UNSURE
    return _SURE if probability >= _SURE_ABOVE else _UNSURE


def _colour(label: Label) -> Colour:
    surest = label.classes[0][1] if label.classes else 0.0
    return colour_of(surest, bool(label.warning), label.grave)


def _darker(colour: Colour) -> Colour:
    blue, green, red = (channel // 2 for channel in colour)
    return blue, green, red


def _shade(image: np.ndarray, panel: Rectangle) -> None:
    part = image[panel.y : panel.y + panel.height, panel.x : panel.x + panel.width]
    part[:] = part // 4 + np.array(_PAPER, np.uint8) // 2


def _write(image: np.ndarray, text: str, x: int, y: int, line: int, scale: float, colour: Colour) -> None:
    # the built-in font knows ASCII only; other letters would come out as question marks per byte
    shown = text.encode("ascii", "replace").decode()[:40]
    place = (x + round(4 * scale), y + round(line * 0.75))
    cv2.putText(image, shown, place, _FONT, 0.55 * scale, colour, max(1, round(scale)), cv2.LINE_AA)
