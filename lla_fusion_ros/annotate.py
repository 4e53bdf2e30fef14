"""Draws what is known about a frame onto its image: boxes, class bars, warning badges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from lla_fusion_ros.crops import Pixels

Colour = tuple[int, int, int]  # blue, green, red
_SURE: Colour = (80, 200, 60)
_UNSURE: Colour = (60, 190, 240)
_ALARM: Colour = (50, 50, 230)
_INK: Colour = (245, 245, 245)
_PAPER: Colour = (30, 30, 30)
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_SURE_ABOVE = 0.8


@dataclass(frozen=True, slots=True)
class Label:
    """What to draw for one object.

    Attributes:
        box: cx, cy, w, h in pixels.
        title: shown first, such as the track id.
        classes: names and probabilities, surest first; one bar each.
        warning: text of the badge; empty for none.
    """

    box: tuple[float, float, float, float]
    title: str
    classes: tuple[tuple[str, float], ...]
    warning: str = ""


def to_bgr8(pixels: Pixels) -> np.ndarray:
    """A copy of the image that can be drawn on.  [height, width, 3] uint8 BGR"""
    array = pixels.array
    if array.dtype != np.uint8:
        array = (array >> 8).astype(np.uint8)
    if pixels.order == "mono":
        return np.repeat(array[..., None], 3, axis=2)
    return np.array(array[..., ::-1] if pixels.order == "rgb" else array, order="C")


def draw_labels(image: np.ndarray, labels: Sequence[Label]) -> None:
    """Draw onto a BGR image, in place; text grows with the image."""
    scale = float(np.clip(image.shape[0] / 720, 0.35, 2.0))
    for label in labels:
        _draw_label(image, label, scale)


def _draw_label(image: np.ndarray, label: Label, scale: float) -> None:
    height, width = image.shape[:2]
    cx, cy, box_width, box_height = label.box
    left, top = int(cx - box_width / 2), int(cy - box_height / 2)
    right, bottom = int(cx + box_width / 2), int(cy + box_height / 2)
    colour = _colour(label)
    cv2.rectangle(image, (left, top), (right, bottom), colour, max(1, round(2 * scale)), cv2.LINE_AA)
    line = round(22 * scale)
    panel_width = round(190 * scale)
    lines = 1 + len(label.classes) + bool(label.warning)
    x = min(max(left, 0), max(width - panel_width, 0))
    below = bottom + 2 + lines * line <= height
    y = bottom + 2 if below else max(top - 2 - lines * line, 0)
    _shade(image, x, y, panel_width, lines * line)
    _write(image, label.title, x, y, line, scale, colour)
    for row, (name, probability) in enumerate(label.classes, start=1):
        bar = round((panel_width - 4) * float(np.clip(probability, 0, 1)))
        at = y + row * line
        cv2.rectangle(image, (x + 2, at + 3), (x + 2 + bar, at + line - 2), _darker(colour), cv2.FILLED)
        _write(image, f"{probability:4.0%} {name}", x, at, line, scale, _INK)
    if label.warning:
        at = y + (lines - 1) * line
        cv2.rectangle(image, (x, at), (x + panel_width, at + line), _ALARM, cv2.FILLED)
        _write(image, f"! {label.warning}", x, at, line, scale, _INK)


def _colour(label: Label) -> Colour:
    if label.warning:
        return _ALARM
    return _SURE if label.classes and label.classes[0][1] >= _SURE_ABOVE else _UNSURE


def _darker(colour: Colour) -> Colour:
    blue, green, red = (channel // 2 for channel in colour)
    return blue, green, red


def _shade(image: np.ndarray, x: int, y: int, width: int, height: int) -> None:
    part = image[y : y + height, x : x + width]
    part[:] = part // 4 + np.array(_PAPER, np.uint8) // 2


def _write(image: np.ndarray, text: str, x: int, y: int, line: int, scale: float, colour: Colour) -> None:
    # the built-in font knows ASCII only; other letters would come out as question marks per byte
    shown = text.encode("ascii", "replace").decode()[:40]
    place = (x + round(4 * scale), y + round(line * 0.75))
    cv2.putText(image, shown, place, _FONT, 0.55 * scale, colour, max(1, round(scale)), cv2.LINE_AA)
