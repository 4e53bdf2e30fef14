"""Pictures of the scores: a reliability diagram, and the whole drive at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lla_fusion_ros.report import svg
from lla_fusion_ros.report.html import escape
from lla_fusion_ros.report.track_chart import OTHER
from lla_fusion_ros.report.tracks import Point, Timeline
from lla_fusion_ros.types.metrics import Reliability

_SIDE, _PAD, _TOP = 190.0, 34.0, 14.0
ROW = 13.0
LONGEST_NAME = 48  # letters beside the bars; a UUID has 36


def reliability_svg(table: Reliability, title: str, ece: float) -> str:
    """Accuracy against confidence; the area of a dot grows with the number of views in its bin."""
    parts = [
        svg.rect(_PAD, _TOP, _SIDE, _SIDE, 'class="plot"'),
        f'<line class="ideal" x1="{_PAD:g}" y1="{_TOP + _SIDE:g}" x2="{_PAD + _SIDE:g}" y2="{_TOP:g}"/>',
    ]
    filled = np.flatnonzero(table.count)
    most = max(int(table.count.max()), 1)
    xs = _PAD + _SIDE * table.confidence
    ys = _TOP + _SIDE * (1 - table.accuracy)
    parts.append(f'<polyline class="curve" points="{svg.points(xs[filled], ys[filled])}"/>')
    for index in filled:
        radius = 2.5 + 9 * float(np.sqrt(table.count[index] / most))
        parts.append(
            f'<circle class="dot" cx="{svg.number(xs[index])}" cy="{svg.number(ys[index])}" '
            f'r="{svg.number(radius)}"><title>{int(table.count[index])} views, said '
            f"{table.confidence[index]:.2f}, right {table.accuracy[index]:.2f}</title></circle>"
        )
    for share in (0, 0.5, 1):
        parts.append(svg.text(_PAD + _SIDE * share, _SIDE + _TOP + 14, f"{share:g}", "axis", "middle"))
        parts.append(svg.text(_PAD - 5, _TOP + 4 + _SIDE * (1 - share), f"{share:g}", "axis", "end"))
    parts.append(svg.text(_PAD + _SIDE / 2, _SIDE + _TOP + 26, "said", "axis", "middle"))
    parts.append(svg.text(_PAD - 5, _TOP + 4 + _SIDE / 4, "right", "axis", "end"))
    width = _PAD + _SIDE + 16
    return (
        f'<figure class="reliability"><svg viewBox="0 0 {width:g} {_SIDE + _TOP + 32:g}" role="img" '
        f'aria-label="reliability of {escape(title)}: how often right against how sure, ECE {ece:.3f}">'
        f"{''.join(parts)}</svg>"
        f"<figcaption><b>{escape(title)}</b> ECE {ece:.3f}</figcaption></figure>"
    )


def overview(tracks: Sequence[Timeline], first: int, last: int, colours: Mapping[int, int]) -> str:
    """All objects as bars over the recording, in the colour of the fused class; warned parts are marked.

    Of many the page shows some, and scrolls; the seconds stay in sight.
    """
    width = 760.0
    names = [_fitting(track.id) for track in tracks]
    left = max([62.0, *(svg.text_width(name) + 10 for name in names)])
    span = max((last - first) / 1e9, 1e-9)
    scale = (width - left - 10) / span
    parts = []
    for row, (track, name) in enumerate(zip(tracks, names, strict=True)):
        y = row * ROW
        points = sorted(track.points, key=lambda point: point.stamp)
        starts = [(point.stamp - first) / 1e9 for point in points]
        told = f"{track.id}: {starts[0]:.1f} to {starts[-1]:.1f} s{', warned of' if track.reasons else ''}"
        body = [
            f"<title>{escape(told)}</title>",
            svg.text(left - 6, y + ROW - 3, name, "axis", "end"),
        ]
        usual = _usual_gap(points)
        for (begin, end, top), bad in _runs(points, starts, usual):
            fill = f'fill="{svg.COLOURS[colours[top]] if top in colours else OTHER}"'
            x, length = left + begin * scale, (end - begin) * scale
            body.append(svg.rect(x, y + 2, length, ROW - 5, fill))
            if bad:
                body.append(svg.rect(x, y + ROW - 3, length, 2.5, 'class="alarm"'))
        parts.append(f'<a href="#{anchor(track)}">{"".join(body)}</a>')
    height = len(tracks) * ROW
    grid, seconds = [], []
    for tick in svg.nice_ticks(0, span):
        place = svg.number(left + tick * scale)
        grid.append(f'<line class="grid" x1="{place}" x2="{place}" y1="0" y2="{height:g}"/>')
        seconds.append(svg.text(left + tick * scale, 12, f"{tick:g} s", "axis", "middle"))
    return (
        f'<div class="overview"><svg class="seconds" viewBox="0 0 {width:g} 16" aria-hidden="true">'
        f'{"".join(seconds)}</svg><svg viewBox="0 0 {width:g} {height:g}" role="group" '
        f'aria-label="all objects over time, a link each">{"".join(grid + parts)}</svg></div>'
    )


def anchor(track: Timeline) -> str:
    """The id of a track's card in the page."""
    return "track-" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in track.id)


def _fitting(name: str) -> str:
    """The whole name, unless it would leave the bars no room: then its beginning and its end."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _usual_gap(points: Sequence[Point]) -> float:
    """Seconds between two views by the same camera: those of different cameras may share their stamps."""
    gaps: list[np.ndarray] = []
    for camera in {point.camera for point in points}:
        gaps.append(np.diff([point.stamp for point in points if point.camera == camera]) / 1e9)
    every = np.concatenate(gaps) if gaps else np.zeros(0)
    every = every[every > 0]
    return float(np.median(every)) if len(every) else 0.1


def _runs(points: Sequence, starts: list[float], usual: float) -> list[tuple[tuple[float, float, int], bool]]:
    """Stretches of the same shown class and the same state of warning."""
    runs: list[tuple[tuple[float, float, int], bool]] = []
    for point, start in zip(points, starts, strict=True):
        top, bad = point.top, point.level > 0
        if runs:
            (begin, end, before), was = runs[-1]
            if start - end < 3 * usual:
                runs[-1] = (begin, start, before), was
                if before == top and was == bad:
                    continue
        runs.append(((start, start + usual, top), bad))
    return runs
