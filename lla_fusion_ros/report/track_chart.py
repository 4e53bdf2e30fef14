"""The picture of one track: flickering single frames above, the fused distribution below, warnings too."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from lla_fusion_ros.report import svg
from lla_fusion_ros.report.tracks import Point, Thumbnail, Timeline
from lla_fusion_ros.report.truth import Truth

WIDTH, RIGHT = 760.0, 16.0
LEAST_LEFT = 62.0
STRIP, STRIP_GAP = 15.0, 3.0
AREA, ENTROPY, GAP = 108.0, 46.0, 14.0
PICTURE = 40.0
SHOWN_CLASSES = 6
OTHER = "var(--other)"


@dataclass(frozen=True, slots=True)
class Axis:
    """Seconds of the recording to x; labels stand on the left of it."""

    start: float
    stop: float
    left: float = LEAST_LEFT

    def x(self, seconds: np.ndarray | float) -> np.ndarray | float:
        share = (np.asarray(seconds) - self.start) / max(self.stop - self.start, 1e-9)
        placed = self.left + share * (WIDTH - self.left - RIGHT)
        return float(placed) if np.ndim(placed) == 0 else placed


def main_classes(timeline: Timeline) -> list[int]:
    """The classes worth a colour: most fused probability first, then what single frames often said."""
    mass = np.sum([point.pmf for point in timeline.points], axis=0)
    single = np.bincount([point.single for point in timeline.points], minlength=len(mass))
    order = np.argsort(-(mass + 0.6 * single), kind="stable")
    return [int(index) for index in order[:SHOWN_CLASSES] if mass[index] + single[index] > 0.02]


def track_svg(timeline: Timeline, first: int, truth: Truth | None, names: Sequence[str]) -> str:
    """The whole chart; x is seconds since the recording began."""
    seconds = np.array([(point.stamp - first) / 1e9 for point in timeline.points])
    order = np.argsort(seconds, kind="stable")
    points = [timeline.points[index] for index in order]
    seconds = seconds[order]
    pad = max(0.04 * (seconds[-1] - seconds[0]), 0.15)
    cameras = sorted({point.camera for point in points})
    labels = _short_names(cameras)
    left = max([LEAST_LEFT, *(svg.text_width(label) + 10 for label in labels)])
    axis = Axis(seconds[0] - pad / 2, seconds[-1] + pad, min(left, WIDTH / 2))
    shown = main_classes(timeline)
    parts: list[str] = []
    y = 0.0
    for camera, label in zip(cameras, labels, strict=True):
        pictures = [each for each in timeline.thumbnails if each.camera == camera]
        if pictures:
            y += 4 if y else 0
            parts.append(_pictures(pictures, first, axis, y))
            y += PICTURE + 3
        parts.append(svg.text(axis.left - 6, y + STRIP - 4, label, "axis", "end"))
        parts.append(_strip(points, seconds, camera, axis, y, names, shown))
        y += STRIP + STRIP_GAP
    y += 6
    top = y
    parts.append(_areas(points, seconds, axis, y, shown, names))
    if truth is not None:
        parts.append(_truth_bar(timeline.track_id, truth, points, seconds, axis, y + AREA + 3, names))
    y += AREA + GAP
    parts.append(_entropy(points, seconds, axis, y))
    y += ENTROPY
    parts.append(_changes(points, seconds, axis, top, top + AREA))
    parts.append(_warning_bands(points, seconds, axis, top, y))
    parts.append(_time_axis(axis, y))
    height = y + 18
    return (
        f'<svg viewBox="0 0 {svg.number(WIDTH)} {svg.number(height)}" role="img" '
        f'aria-label="track {escape(timeline.id)} over time" data-top="{svg.number(top)}" '
        f'data-bottom="{svg.number(y)}" data-left="{svg.number(axis.left)}" data-right="{WIDTH - RIGHT:g}" '
        f'data-start="{axis.start:.3f}" data-stop="{axis.stop:.3f}">'
        f"{''.join(parts)}<line class='cursor' y1='{svg.number(top)}' y2='{svg.number(y)}'/></svg>"
    )


def _short_names(cameras: Sequence[str]) -> list[str]:
    """The last part of each camera's name where that tells them apart."""
    short = [camera.rpartition("/")[2] for camera in cameras]
    return short if len(set(short)) == len(short) else list(cameras)


def _pictures(pictures: Sequence[Thumbnail], first: int, axis: Axis, y: float) -> str:
    """One camera's thumbnails where they were taken; those that would overlap are left out."""
    parts = []
    free = -np.inf
    for thumbnail in sorted(pictures, key=lambda each: each.stamp):
        x = float(axis.x((thumbnail.stamp - first) / 1e9)) - PICTURE / 2
        x = min(max(x, axis.left), WIDTH - RIGHT - PICTURE)
        if x < free:
            continue
        free = x + PICTURE + 3
        data = base64.b64encode(thumbnail.jpeg).decode()
        parts.append(
            f'<image x="{svg.number(x)}" y="{svg.number(y)}" width="{PICTURE:g}" height="{PICTURE:g}" '
            f'href="data:image/jpeg;base64,{data}"><title>{escape(thumbnail.camera)}</title></image>'
        )
    return "".join(parts)


def _colour(index: int, shown: Sequence[int]) -> str:
    return svg.class_colour(index) if index in shown else OTHER


def _strip(
    points: list[Point],
    seconds: np.ndarray,
    camera: str,
    axis: Axis,
    y: float,
    names: Sequence[str],
    shown: Sequence[int],
) -> str:
    """One bar per single frame: its colour is the class, its strength the probability."""
    own = [index for index, point in enumerate(points) if point.camera == camera]
    xs = np.atleast_1d(axis.x(seconds[own]))
    gaps = np.diff(xs)
    usual = float(np.median(gaps)) if len(gaps) else 6.0
    parts = []
    for place, index in enumerate(own):
        point = points[index]
        width = min(gaps[place] if place < len(gaps) else usual, usual * 1.6)
        fill = f'fill="{_colour(point.single, shown)}" fill-opacity="{0.25 + 0.75 * point.single_p:.2f}"'
        parts.append(svg.rect(xs[place], y, width - 0.4, STRIP, fill))
    return "".join(parts)


def _areas(
    points: list[Point], seconds: np.ndarray, axis: Axis, y: float, shown: list[int], names: Sequence[str]
) -> str:
    """The fused distribution, stacked; the most probable class at the bottom."""
    pmf = np.array([point.pmf for point in points], float)
    rest = np.clip(1.0 - pmf[:, shown].sum(axis=1), 0, 1)
    layers = [*((svg.class_colour(index), pmf[:, index]) for index in shown), (OTHER, rest)]
    xs, _ = svg.steps(np.append(seconds, axis.stop - 1e-6), np.zeros(len(seconds) + 1))
    xs = np.asarray(axis.x(xs))
    low = np.zeros(len(xs))
    parts = [svg.rect(axis.left, y, WIDTH - axis.left - RIGHT, AREA, 'class="plot"')]
    for colour, values in layers:
        held = np.repeat(values, 2)
        high = low + np.append(held, held[-1])[: len(xs)]
        parts.append(
            f'<path d="{svg.area(xs, y + AREA * (1 - low), y + AREA * (1 - high))}" '
            f'fill="{colour}" fill-opacity=".82"/>'
        )
        low = high
    for share, label in ((0.5, ".5"), (1.0, "1")):
        parts.append(svg.text(axis.left - 6, y + AREA * (1 - share) + 4, label, "axis", "end"))
    parts.append(svg.text(axis.left - 22, y + AREA / 2 + 4, "fused", "axis", "end"))
    return "".join(parts)


def _truth_bar(
    track: str,
    truth: Truth,
    points: list[Point],
    seconds: np.ndarray,
    axis: Axis,
    y: float,
    names: Sequence[str],
) -> str:
    """A thin bar in the colour of what the object really is; hatched for what no network knows."""
    spans: list[tuple[float, float, str]] = []
    for index, point in enumerate(points):
        span = truth.class_at(track, point.stamp)
        if span is None:
            continue
        known = span.class_name in names
        colour = svg.class_colour(list(names).index(str(span.class_name))) if known else "url(#outside)"
        stop = float(seconds[index + 1]) if index + 1 < len(seconds) else axis.stop
        if spans and spans[-1][2] == colour:
            spans[-1] = spans[-1][0], stop, colour
        else:
            spans.append((float(seconds[index]), stop, colour))
    bars = (
        svg.rect(float(axis.x(start)), y, float(axis.x(stop)) - float(axis.x(start)), 5, f'fill="{colour}"')
        for start, stop, colour in spans
    )
    return "".join(bars) + svg.text(axis.left - 6, y + 7, "truth", "axis", "end")


def _entropy(points: list[Point], seconds: np.ndarray, axis: Axis, y: float) -> str:
    values = np.array([point.entropy for point in points])
    xs, ys = svg.steps(np.append(seconds, axis.stop), np.append(values, values[-1]))
    line = svg.points(np.atleast_1d(axis.x(xs)), y + ENTROPY * (1 - np.clip(ys, 0, 1)))
    return (
        svg.rect(axis.left, y, WIDTH - axis.left - RIGHT, ENTROPY, 'class="plot"')
        + f'<polyline class="entropy" points="{line}"/>'
        + svg.text(axis.left - 6, y + ENTROPY / 2 + 4, "entropy", "axis", "end")
    )


def _changes(points: list[Point], seconds: np.ndarray, axis: Axis, top: float, bottom: float) -> str:
    """A dashed line wherever the shown class becomes another."""
    tops = [int(point.pmf.argmax()) for point in points]
    places = [float(axis.x(seconds[i])) for i in range(1, len(tops)) if tops[i] != tops[i - 1]]
    return "".join(
        f'<line class="change" x1="{svg.number(x)}" x2="{svg.number(x)}" y1="{svg.number(top)}" '
        f'y2="{svg.number(bottom)}"><title>the shown class changes</title></line>'
        for x in places
    )


def _warning_bands(points: list[Point], seconds: np.ndarray, axis: Axis, top: float, bottom: float) -> str:
    """Where the track is warned of: bars above the fused distribution and below the entropy, which keep
    their colours; "cannot tell" is hatched."""
    parts = []
    begin: float | None = None
    before = ""
    edges = [*zip(seconds.tolist(), map(_kind, points), strict=True), (axis.stop, "")]
    for moment, now in edges:
        if begin is not None and now != before:
            x = float(axis.x(begin))
            width = max(float(axis.x(moment)) - x, 2.0)
            fill = (
                'class="band solid tell" fill="url(#unsure)"'
                if before == "tell"
                else f'class="band solid {before}"'
            )
            parts.append(svg.rect(x, top - 6, width, 5, fill))
            parts.append(svg.rect(x, bottom - 3, width, 3, fill))
            begin = None
        if now and begin is None:
            begin = moment
        before = now
    return "".join(parts)


def _kind(point: Point) -> str:
    if "cannot_tell" in point.reasons:
        return "tell"
    return "error" if point.level > 1 else "warn" if point.level else ""


def _time_axis(axis: Axis, y: float) -> str:
    ticks = svg.nice_ticks(axis.start, axis.stop)
    return "".join(
        f'<line class="tick" x1="{svg.number(float(axis.x(tick)))}" x2="{svg.number(float(axis.x(tick)))}" '
        f'y1="{svg.number(y)}" y2="{svg.number(y + 4)}"/>'
        + svg.text(float(axis.x(tick)), y + 15, f"{abs(tick):g} s", "axis", "middle")
        for tick in ticks
    )
