"""The cards of the report: one object each, its chart and what can be read off it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lla_fusion_ros.report import html, svg
from lla_fusion_ros.report.html import escape
from lla_fusion_ros.report.score_charts import anchor
from lla_fusion_ros.report.track_chart import TrackChart, main_classes
from lla_fusion_ros.report.tracks import Point, Timeline, TimelineSink, thinned_pictures, thinned_points
from lla_fusion_ros.types.pmf import percent

MOST_OPEN = 60  # objects; of more only those that need a look are unfolded
LARGEST = 9_000_000  # bytes of all cards
DETAIL = ((480, 10), (240, 8), (120, 5), (60, 3), (30, 2), (15, 1))  # points of a card, pictures of a camera
UNSURE = 0.6  # probability of the class shown last
MANY_CHANGES = 3
MILD = ("camera_disagreement", "cannot_tell", "nothing_there")  # reasons that are no errors
NAMED = 4  # classes of a set in the headline


class Told(Protocol):
    """What cards need of a report."""

    @property
    def class_names(self) -> Sequence[str]: ...

    @property
    def timelines(self) -> TimelineSink: ...


class Cards:
    """Of all objects of a report.

    Attributes:
        colours: number of the colour of each class that is shown somewhere.
    """

    def __init__(self, report: Told, tracks: Sequence[Timeline]) -> None:
        self._report, self._tracks = report, tracks
        self._names = list(report.class_names)
        self._shown = [main_classes(track) for track in tracks]
        true = [self._true_classes(track) for track in tracks]
        together = [[*shown, *more] for shown, more in zip(self._shown, true, strict=True)]
        self.colours = svg.class_colours((list(dict.fromkeys(each)) for each in together), self._names)
        self._shown = [self._apart(shown) for shown in self._shown]

    def _apart(self, shown: list[int]) -> list[int]:
        """Without classes whose colour a more important one has: there they are among the others."""
        first = {self.colours[index]: index for index in reversed(shown)}
        return [index for index in shown if first[self.colours[index]] == index]

    def html(self) -> list[str]:
        """In as much detail as fits one file; of many, those that need a look come first."""
        places = list(range(len(self._tracks)))
        if len(places) > MOST_OPEN:
            places.sort(key=lambda at: not self._needs_a_look(self._tracks[at]))
        for points, pictures in DETAIL:
            cards = [self._card(at, points, pictures) for at in places]
            if sum(map(len, cards)) <= LARGEST:
                break
        return cards

    def _needs_a_look(self, track: Timeline) -> bool:
        """Warned of, wrong, unsure in the end, or of a class that changed again and again."""
        last = max(track.points, key=lambda point: point.stamp)
        wrong = False
        if track.told is not None:
            seen, shown = track.told
            wrong = shown.class_name in self._names and shown.class_name != self._names[seen.top]
        return bool(track.reasons) or wrong or last.p < UNSURE or track.flips - track.changes > MANY_CHANGES

    def _true_classes(self, track: Timeline) -> list[int]:
        named = {point.truth.class_name for point in track.points if point.truth is not None}
        return sorted(index for index, name in enumerate(self._names) if name in named)

    def _card(self, at: int, most_points: int, most_pictures: int) -> str:
        track, names = self._tracks[at], self._names
        points = sorted(track.points, key=lambda point: point.stamp)
        last = points[-1]
        first = self._report.timelines.first or 0
        badges = "".join(
            f"<span class='badge {'' if reason in MILD else 'error'}'>{escape(html.words(reason))}</span>"
            for reason in track.reasons
        )
        if track.changes:
            badges += f"<span class='badge right'>class change {track.changes}×</span>"
        words = [track.id, names[last.top], *track.members]
        if track.told is not None:
            seen, shown = track.told
            known = shown.class_name if shown.class_name in names else None
            badges += _truth_badge(known, names[seen.top])
            words.append(known or "unknown object")
        look = self._needs_a_look(track)
        kinds = [*track.reasons, *(["look"] if look else [])]
        kept = thinned_points(points, most_points)
        cameras = sorted(track.seen)
        pictures = [
            picture
            for camera in cameras
            for picture in thinned_pictures(
                [each for each in track.thumbnails if each.camera == camera], most_pictures
            )
        ]
        chart = TrackChart(track, kept, pictures, first, names, self._shown[at], self.colours)
        about = self._about(track, points, first)
        legend = "".join(
            f"<span><i style='background:{svg.COLOURS[self.colours[each]]}'></i>{escape(names[each])}</span>"
            for each in self._shown[at]
        )
        is_open = " open" if look or len(self._tracks) <= MOST_OPEN else ""
        readings = html.json_text({"cameras": cameras, "rows": self._readings(kept, cameras, first)})
        return (
            f"<details class='card track' id='{anchor(track)}' data-kind='{escape(' '.join(kinds))}' "
            f"data-words='{escape(' '.join(words).lower(), quote=True)}'{is_open}>"
            f"<summary><h3>{escape(track.id)}</h3>{badges}"
            f"<span class='now'>{escape(names[last.top])} <b>{escape(percent(last.p))}</b></span>"
            "</summary>"
            f"<div class='scroll'>{chart.svg(f'{track.id}: {about}')}</div>"
            f"<div class='legend'>{legend}</div><div class='read' aria-live='polite'>{escape(about)}</div>"
            f"{self._members(track, first)}<script type='application/json'>{readings}</script></details>"
        )

    def _about(self, track: Timeline, points: Sequence[Point], first: int) -> str:
        """The chart in words."""
        names, last = self._names, points[-1]
        told = [f"{names[last.top]} {percent(last.p)} after {track.views} views"]
        if self._report.timelines.statements is not None:
            told.append(self._promise(last))
        told.append(f"shown class changed {track.flips}× (single frames {track.single_flips}×)")
        before = points[0]
        for point in points:
            if point.top != before.top and track.flips <= MANY_CHANGES:
                moment = (point.stamp - first) / 1e9
                told.append(f"at {moment:.1f} s {names[before.top]} → {names[point.top]}")
            before = point
        if track.warned_views:
            told.append(f"warned for {track.warned_views} views")
        return " · ".join(told)

    def _promise(self, point: Point) -> str:
        """Bound and set."""
        if point.bound >= 1 or point.choices >= len(self._names):
            return "nothing is promised: any class is possible"
        inside = [self._names[i] for i in point.pmf.argsort()[::-1][: point.choices]]
        more = f" and {len(inside) - NAMED} more" if len(inside) > NAMED else ""
        statements = self._report.timelines.statements
        share = f"{statements.coverage:.0%} " if statements is not None else ""
        return f"error at most {point.bound:.1%} · {share}set: {', '.join(inside[:NAMED])}{more}"

    def _members(self, track: Timeline, first: int) -> str:
        """Which tracks of which cameras became this object."""
        if len(track.members) < 2:
            return ""
        rows = [
            html.cell(member) + html.cell(f"{track.member_views.get(member, 0)}")
            + html.cell(f"{(since - first) / 1e9:.1f} s")
            for member, since in sorted(track.members.items(), key=lambda item: item[1])
        ]  # fmt: skip
        table = html.table(("track", "views", "part of this object since"), rows)
        return (
            f"<details class='members'><summary>one object of {len(rows)} tracks</summary>{table}</details>"
        )

    def _readings(self, points: Sequence[Point], cameras: Sequence[str], first: int) -> list[list[object]]:
        rows: list[list[object]] = []
        for point in points:
            why = ", ".join(html.words(reason) for reason in point.reasons)
            single = cameras.index(point.camera), point.single, round(point.single_p, 3)
            fused = point.top, round(point.p, 3), round(point.entropy, 3)
            promise = self._promise(point) if self._report.timelines.statements is not None else ""
            rows.append([round((point.stamp - first) / 1e9, 3), *single, *fused, why, promise])
        return rows


def _truth_badge(true: str | None, said: str) -> str:
    if true is None:
        return "<span class='badge'>truth: unknown object</span>"
    css = "right" if true == said else "wrong"
    return f"<span class='badge {css}'>truth: {escape(true)}</span>"
