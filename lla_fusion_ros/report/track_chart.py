"""The picture of one track: flickering single frames above, the fused distribution below, warnings too."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.report import svg
from lla_fusion_ros.report.html import escape
from lla_fusion_ros.report.tracks import Point, Thumbnail, Timeline

WIDTH, RIGHT = 760.0, 16.0
LEAST_LEFT = 62.0
STRIP, STRIP_GAP = 15.0, 3.0
AREA, DOUBT, GAP = 108.0, 46.0, 14.0
PICTURE = 40.0
SHOWN_CLASSES = 6
LEAST_SHOWN = 0.05  # probability that a class once had, to be shown
LETTER_HIGH = 15.0  # of a band that has room for its class's name
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
    pmf = np.array([point.pmf for point in timeline.points])  # [points, classes]
    mass, seen = pmf.sum(axis=0), pmf.max(axis=0) > LEAST_SHOWN
    single = np.bincount([point.single for point in timeline.points], minlength=len(mass))
    order = np.argsort(-(mass + 0.6 * single), kind="stable")
    return [int(index) for index in order[:SHOWN_CLASSES] if seen[index] or single[index]]


@dataclass(frozen=True)
class TrackChart:
    """What the chart of one track is drawn from; x is seconds since the recording began.

    Attributes:
        points: in the order of time.
        shown: classes that have a colour; the others share one.
        colours: number of the colour of each class.
    """

    timeline: Timeline
    points: Sequence[Point]
    pictures: Sequence[Thumbnail]
    first: int
    names: Sequence[str]
    shown: Sequence[int]
    colours: Mapping[int, int]

    def svg(self, about: str) -> str:
        """The whole chart; `about` tells the same in words."""
        points, first = self.points, self.first
        seconds = np.array([(point.stamp - first) / 1e9 for point in points])
        pad = max(0.04 * (seconds[-1] - seconds[0]), 0.15)
        cameras = sorted({point.camera for point in points})
        labels = _short_names(cameras)
        left = max([LEAST_LEFT, *(svg.text_width(label) + 10 for label in labels)])
        axis = Axis(seconds[0] - pad / 2, seconds[-1] + pad, min(left, WIDTH / 2))
        xs = np.atleast_1d(axis.x(seconds))
        parts: list[str] = []
        y = 0.0
        for camera, label in zip(cameras, labels, strict=True):
            pictures = [each for each in self.pictures if each.camera == camera]
            if pictures:
                y += 4 if y else 0
                parts.append(self._pictures(pictures, axis, y))
                y += PICTURE + 3
            parts.append(svg.text(axis.left - 6, y + STRIP - 4, label, "axis", "end"))
            parts.append(self._strip(xs, camera, y))
            y += STRIP + STRIP_GAP
        y += 6
        top = y
        parts.append(self._areas(xs, axis, y))
        if any(point.truth is not None for point in self.points):
            parts.append(self._truth_bar(seconds, axis, y + AREA + 3))
        y += AREA + GAP
        parts.append(self._doubt(xs, axis, y))
        y += DOUBT
        parts.append(self._changes(xs, top, top + AREA))
        parts.append(_warning_bands(points, seconds, axis, top, y))
        parts.append(_time_axis(axis, y))
        size = f"0 0 {svg.number(WIDTH)} {svg.number(y + 18)}"
        return (
            f'<svg viewBox="{size}" role="img" aria-label="{escape(about)}" tabindex="0" '
            f'data-left="{svg.number(axis.left)}" data-right="{WIDTH - RIGHT:g}" '
            f'data-start="{axis.start:.3f}" data-stop="{axis.stop:.3f}">'
            f"{''.join(parts)}<line class='cursor' y1='{svg.number(top)}' y2='{svg.number(y)}'/></svg>"
        )

    def _pictures(self, pictures: Sequence[Thumbnail], axis: Axis, y: float) -> str:
        """One camera's thumbnails where they were taken; where they would overlap, one that contradicts the
        fused class comes before others. Those have a frame."""
        parts = []
        taken: list[float] = []
        for each in sorted(pictures, key=lambda each: (not each.against, each.stamp)):
            moment = (each.stamp - self.first) / 1e9
            x = min(max(float(axis.x(moment)) - PICTURE / 2, axis.left), WIDTH - RIGHT - PICTURE)
            if any(abs(x - other) < PICTURE + 3 for other in taken):
                continue
            taken.append(x)
            data = base64.b64encode(each.jpeg).decode()
            place = f'x="{svg.number(x)}" y="{svg.number(y)}" width="{PICTURE:g}" height="{PICTURE:g}"'
            said = f"{each.camera}, {moment:.1f} s: {self.names[each.single]}"
            said += ", against the fused class" if each.against else ""
            parts.append(
                f'<image {place} href="data:image/jpeg;base64,{data}"><title>{escape(said)}</title></image>'
                + (f'<rect {place} class="against"/>' if each.against else "")
            )
        return "".join(parts)

    def _colour(self, index: int) -> str:
        return svg.COLOURS[self.colours[index]] if index in self.shown else OTHER

    def _strip(self, xs: np.ndarray, camera: str, y: float) -> str:
        """One bar per single frame: its colour is the class, its strength the probability."""
        own = [index for index, point in enumerate(self.points) if point.camera == camera]
        gaps = np.diff(xs[own])
        usual = float(np.median(gaps)) if len(gaps) else 6.0
        bars: dict[str, str] = {}  # by their look
        for place, index in enumerate(own):
            point = self.points[index]
            width = max(min(gaps[place] if place < len(gaps) else usual, usual * 1.6) - 0.4, 0.5)
            strength = round(4 * (0.25 + 0.75 * point.single_p)) / 4
            look = f'fill="{self._colour(point.single)}" fill-opacity="{strength:g}"'
            bar = f"M{svg.number(xs[index])},{y:g}h{svg.number(width)}v{STRIP:g}h-{svg.number(width)}z"
            bars[look] = bars.get(look, "") + bar
        return "".join(f'<path d="{path}" {look}/>' for look, path in bars.items())

    def _areas(self, xs: np.ndarray, axis: Axis, y: float) -> str:
        """The fused distribution, stacked; the most probable class at the bottom, with its name."""
        end, base = WIDTH - RIGHT, y + AREA
        pmf = np.array([point.pmf for point in self.points], float)[:, list(self.shown)]
        heights = np.clip(np.cumsum(pmf, axis=1), 0, 1)
        parts = [svg.rect(axis.left, y, end - axis.left, AREA, 'class="plot"')]
        parts.append(svg.rect(float(xs[0]), y, end - float(xs[0]), AREA, f'fill="{OTHER}"'))
        # from the uppermost on: each covers what is below its own curve, the next one a part of that
        for column in reversed(range(len(self.shown))):
            curve = svg.steps(xs, base - AREA * heights[:, column], end)
            start = svg.number(float(xs[0]))
            parts.append(f'<path d="{curve}V{base:g}H{start}Z" fill="{self._colour(self.shown[column])}"/>')
        below = np.concatenate([np.zeros((len(pmf), 1)), heights[:, :-1]], axis=1)
        for column, index in enumerate(self.shown):
            parts.append(self._label(index, xs, end, base, below[:, column], heights[:, column]))
        for share, label in ((0.5, ".5"), (1.0, "1")):
            parts.append(svg.text(axis.left - 6, y + AREA * (1 - share) + 4, label, "axis", "end"))
        parts.append(svg.text(axis.left - 22, y + AREA / 2 + 4, "fused", "axis", "end"))
        return "".join(parts)

    def _label(
        self, index: int, xs: np.ndarray, end: float, base: float, low: np.ndarray, high: np.ndarray
    ) -> str:
        """The name of a class where its band is broad enough for it over the longest time."""
        broad = (high - low) * AREA >= LETTER_HIGH
        width = svg.text_width(self.names[index]) + 8
        best = (0.0, 0.0, 0.0)  # length, x, height
        for start in np.flatnonzero(broad & ~np.append(False, broad[:-1])):
            stop = start + int(np.argmin(np.append(broad[start:], False)))
            bottom, top = low[start:stop].max(), high[start:stop].min()
            length = (xs[stop] if stop < len(xs) else end) - xs[start]
            if length > best[0] and (top - bottom) * AREA >= LETTER_HIGH:
                best = float(length), float(xs[start]), base - AREA * (top + bottom) / 2
        if best[0] < width:
            return ""
        place = f'x="{svg.number(best[1] + best[0] / 2)}" y="{svg.number(best[2] + 4)}"'
        ink = svg.INK[self.colours[index]]
        name = escape(self.names[index])
        return (
            f'<text {place} class="name" fill="{ink}" text-anchor="middle" aria-hidden="true">{name}</text>'
        )

    def _truth_bar(self, seconds: np.ndarray, axis: Axis, y: float) -> str:
        """A thin bar in the colour of what the object really is; hatched for what no network knows."""
        spans: list[tuple[float, float, str]] = []
        for index, point in enumerate(self.points):
            if point.truth is None:
                continue
            name = point.truth.class_name or ""
            number = list(self.names).index(name) if name in self.names else -1
            colour = svg.COLOURS[self.colours[number]] if number >= 0 else "url(#outside)"
            stop = float(seconds[index + 1]) if index + 1 < len(seconds) else axis.stop
            if spans and spans[-1][2] == colour:
                spans[-1] = spans[-1][0], stop, colour
            else:
                spans.append((float(seconds[index]), stop, colour))
        bars = (
            svg.rect(
                float(axis.x(begin)), y, float(axis.x(end)) - float(axis.x(begin)), 5, f'fill="{colour}"'
            )
            for begin, end, colour in spans
        )
        return "".join(bars) + svg.text(axis.left - 6, y + 7, "truth", "axis", "end")

    def _doubt(self, xs: np.ndarray, axis: Axis, y: float) -> str:
        """Entropy, and the bound of the error where one is promised."""
        end = WIDTH - RIGHT
        parts = [
            svg.rect(axis.left, y, end - axis.left, DOUBT, 'class="plot"'),
            svg.text(axis.left - 6, y + DOUBT / 2 + 4, "entropy", "axis", "end"),
        ]
        entropy = np.clip([point.entropy for point in self.points], 0, 1)
        bounds = np.array([point.bound for point in self.points])
        if (bounds < 1).any():
            curve = svg.steps(xs, y + DOUBT * (1 - bounds), end)
            parts.append(f'<path class="bound" d="{curve}"><title>error at most</title></path>')
        curve = svg.steps(xs, y + DOUBT * (1 - entropy), end)
        parts.append(f'<path class="entropy" d="{curve}"><title>entropy</title></path>')
        return "".join(parts)

    def _changes(self, xs: np.ndarray, top: float, bottom: float) -> str:
        """A dashed line wherever the shown class becomes another."""
        tops = [point.top for point in self.points]
        return "".join(
            f'<path class="change" d="M{svg.number(xs[i])},{svg.number(top)}V{svg.number(bottom)}">'
            f"<title>{escape(self.names[tops[i - 1]])} → {escape(self.names[tops[i]])}</title></path>"
            for i in range(1, len(tops))
            if tops[i] != tops[i - 1]
        )


def _short_names(cameras: Sequence[str]) -> list[str]:
    """The last part of each camera's name where that tells them apart."""
    short = [camera.rpartition("/")[2] for camera in cameras]
    return short if len(set(short)) == len(short) else list(cameras)


def _warning_bands(
    points: Sequence[Point], seconds: np.ndarray, axis: Axis, top: float, bottom: float
) -> str:
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
            fill = 'class="band tell" fill="url(#unsure)"' if before == "tell" else f'class="band {before}"'
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
