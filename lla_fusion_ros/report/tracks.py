"""What is kept of a run, track by track, for the report; bounded however long the run is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import cv2
import numpy as np

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.report.truth import Shown, Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.warnings.result import IDENTITY_SWITCH, REASONS

Item = TypeVar("Item")
MOST_POINTS = 480  # per track; beyond that every second one of each camera goes
MOST_THUMBNAILS = 10  # per track and camera
MOST_TRACKS = 600
THUMBNAIL = 56  # pixels
_MARGIN = 0.12


@dataclass(slots=True)
class Point:
    """One view of a track, and the fused state after it."""

    stamp: int
    camera: str
    single: int
    single_p: float
    pmf: np.ndarray  # [classes] float32
    entropy: float  # normalised, 0 to 1
    level: int
    reasons: tuple[str, ...]
    bound: float  # of the error; 1 where nothing is promised
    choices: int  # classes in the set, the surest ones; all where nothing is promised
    truth: Shown | None = None  # what it really shows, where that is known

    @property
    def top(self) -> int:
        return int(self.pmf.argmax())

    @property
    def p(self) -> float:
        """Of the class that is shown."""
        return float(self.pmf[self.top])

    @property
    def against(self) -> bool:
        """Whether this view by itself says another class than all together."""
        return self.single != self.top


@dataclass(slots=True)
class Thumbnail:
    """What a camera saw; `against` where that contradicts the fused class."""

    stamp: int
    camera: str
    jpeg: bytes
    single: int
    against: bool


@dataclass(slots=True)
class Timeline:
    """All that is kept of one track; every number of the report about it comes from here.

    Attributes:
        views, flips, single_flips: over all views, also those not kept as points.
        seen: views by camera; points and thumbnails are thinned out of each camera's views alike.
        reasons: every warning the track ever had.
        warned_views: how many views it was warned for.
        changes: how often its class changed, where it is one that does.
        members: tracks that are this object, and since when; empty where it is one track.
        member_views: how often each of the tracks was seen.
    """

    id: str
    points: list[Point] = field(default_factory=list)
    thumbnails: list[Thumbnail] = field(default_factory=list)
    views: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    flips: int = 0
    single_flips: int = 0
    warned_views: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    stride: int = 1
    thumbnail_stride: dict[str, int] = field(default_factory=dict)
    last_top: int = -1
    last_single: int = -1
    changes: int = 0
    members: dict[str, int] = field(default_factory=dict)
    member_views: dict[str, int] = field(default_factory=dict)

    def absorb(self, other: Timeline) -> None:
        """Take in what another track showed before it turned out to be the same object."""
        self.points = sorted([*self.points, *other.points], key=lambda point: point.stamp)
        self.thumbnails = sorted([*self.thumbnails, *other.thumbnails], key=lambda each: each.stamp)
        self.views += other.views
        self.flips += other.flips
        self.single_flips += other.single_flips
        self.warned_views += other.warned_views
        self.changes += other.changes
        for own, theirs in (
            (self.seen, other.seen),
            (self.reasons, other.reasons),
            (self.member_views, other.member_views),
        ):
            for key, count in theirs.items():
                own[key] = own.get(key, 0) + count

    def misses_contradiction(self, point: Point) -> bool:
        """Whether this view contradicts the fused class, and few pictures of its camera do."""
        kept = sum(each.against for each in self.thumbnails if each.camera == point.camera)
        return point.against and kept < MOST_THUMBNAILS // 3

    @property
    def told(self) -> tuple[Point, Shown] | None:
        """The last view whose truth is known, and that."""
        told = [(point, point.truth) for point in self.points if point.truth is not None]
        return max(told, key=lambda each: each[0].stamp, default=None)

    @property
    def interest(self) -> tuple[bool, int, int]:
        """What is worth keeping: warned tracks, then those that flicker, then long ones."""
        return bool(self.reasons), self.single_flips, self.views


class TimelineSink:
    """Takes every fused frame and keeps the story of each track.

    Args:
        statements: says what may be relied on; None: nothing is promised.
    """

    def __init__(self, truth: Truth | None = None, statements: Statements | None = None) -> None:
        self.truth = truth
        self.statements = statements
        self.tracks: dict[str, Timeline] = {}
        self.forgotten = 0  # tracks left out for want of room
        self.views = 0
        self.first: int | None = None
        self.last = 0
        self.cameras: dict[str, int] = {}

    def take(self, time: int, fused: FusedFrame) -> None:
        frame, result = fused.frame, fused.result
        stamp = frame.header.stamp
        self.first = stamp if self.first is None else min(self.first, stamp)
        self.last = max(self.last, stamp)
        self.cameras[frame.camera] = self.cameras.get(frame.camera, 0) + 1
        self.views += len(result.kept)
        singles = view_pmf(frame)[result.kept]
        warned = reasons_of(fused)
        rows, classes = result.pmf.shape
        bounds, choices = np.ones(rows), np.full(rows, classes)
        if self.statements is not None:
            bounds, choices = self.statements.bounds(fused), self.statements.sets(fused).sum(axis=1)
        shown = (None,) * len(frame) if self.truth is None else self.truth.judge(frame).shown
        wanted: list[tuple[Timeline, Point, int]] = []
        for row, track in enumerate(result.ids):
            timeline = self._timeline(track)
            for member in result.members[row]:
                timeline.members.setdefault(member, stamp)
                if member != track and member in self.tracks:
                    timeline.absorb(self.tracks.pop(member))
            timeline.changes += track in result.changed
            reasons = warned[row]
            single = int(singles[row].argmax())
            entropy = float(result.verdicts.entropy[row] / np.log(max(result.pmf.shape[1], 2)))
            point = Point(
                stamp,
                frame.camera,
                single,
                float(singles[row, single]),
                result.pmf[row].astype(np.float32),
                entropy,
                max(int(result.verdicts.level[row]), bool(reasons)),
                reasons,
                float(bounds[row]),
                int(choices[row]),
                shown[result.kept[row]],
            )
            member = frame.ids[result.kept[row]]
            timeline.member_views[member] = timeline.member_views.get(member, 0) + 1
            _extend(timeline, point)
            stride = timeline.thumbnail_stride.setdefault(frame.camera, 1)
            if (timeline.seen[frame.camera] - 1) % stride == 0 or timeline.misses_contradiction(point):
                wanted.append((timeline, point, result.kept[row]))
        if wanted and frame.pixels is not None:
            self._picture(frame, frame.pixels, wanted)

    def _timeline(self, name: str) -> Timeline:
        if name not in self.tracks:
            if len(self.tracks) >= MOST_TRACKS:
                dullest = min(self.tracks.values(), key=lambda track: track.interest)
                del self.tracks[dullest.id]
                self.forgotten += 1
            self.tracks[name] = Timeline(name)
        return self.tracks[name]

    def _picture(self, frame: ViewFrame, pixels: Pixels, wanted: list[tuple[Timeline, Point, int]]) -> None:
        boxes = frame.bbox[[row for *_, row in wanted]][:, [0, 1, 3, 4]]
        crops = cut_crops(pixels, boxes, THUMBNAIL, _MARGIN)
        for (timeline, point, _), crop in zip(wanted, crops, strict=True):
            bgr = np.ascontiguousarray(crop[..., ::-1])
            jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 78])[1].tobytes()
            picture = Thumbnail(point.stamp, frame.camera, jpeg, point.single, point.against)
            timeline.thumbnails.append(picture)
            own = [each for each in timeline.thumbnails if each.camera == frame.camera]
            if len(own) > MOST_THUMBNAILS:
                others = [each for each in timeline.thumbnails if each.camera != frame.camera]
                timeline.thumbnails = others + thinned_pictures(own, MOST_THUMBNAILS // 2)
                timeline.thumbnail_stride[frame.camera] *= 2


def _extend(timeline: Timeline, point: Point) -> None:
    top = point.top
    if timeline.views:
        timeline.flips += top != timeline.last_top
        timeline.single_flips += point.single != timeline.last_single
    timeline.last_top, timeline.last_single = top, point.single
    for reason in point.reasons:
        timeline.reasons[reason] = timeline.reasons.get(reason, 0) + 1
    timeline.warned_views += point.level > 0
    # a warning is never thinned out of the picture
    seen = timeline.seen.get(point.camera, 0)
    if seen % timeline.stride == 0 or point.level > 0:
        timeline.points.append(point)
    timeline.views += 1
    timeline.seen[point.camera] = seen + 1
    if len(timeline.points) > MOST_POINTS:
        timeline.points = _every_second(timeline.points)
        timeline.stride *= 2


def thinned_pictures(pictures: list[Thumbnail], most: int) -> list[Thumbnail]:
    """Of one camera; up to half of those kept contradict the fused class, where there are such."""
    against = _evenly([each for each in pictures if each.against], max(most // 2, 1))
    others = _evenly([each for each in pictures if not each.against], most - len(against))
    return sorted([*against, *others], key=lambda each: each.stamp)


def thinned_points(points: list[Point], most: int) -> list[Point]:
    """Evenly, and those at which the shown class or the warnings change."""
    if len(points) <= most:
        return points
    kept = {id(point) for point in _evenly(points, most)}
    states = [(point.top, point.level, point.reasons) for point in points]
    changes = [points[at] for at in range(1, len(points)) if states[at] != states[at - 1]]
    kept |= {id(point) for point in _evenly(changes, most)}
    return [point for point in points if id(point) in kept]


def _evenly(items: list[Item], most: int) -> list[Item]:
    """At most so many, the first and the last among them."""
    if len(items) <= most:
        return items
    return [
        items[index] for index in sorted({round(at) for at in np.linspace(0, len(items) - 1, max(most, 1))})
    ]


def _every_second(points: list[Point]) -> list[Point]:
    """Of each camera: where cameras take turns, every second of all would be those of one camera."""
    count: dict[str, int] = {}
    kept = []
    for point in points:
        count[point.camera] = count.get(point.camera, 0) + 1
        if count[point.camera] % 2:
            kept.append(point)
    return kept


def reasons_of(fused: FusedFrame) -> list[tuple[str, ...]]:
    """The warnings of every row of a fused frame; a track that was begun again was an identity switch, unless
    its class is one that changes."""
    restarted = set(fused.result.restarted) - set(fused.result.changed)
    rows = []
    for track, raised in zip(fused.result.ids, fused.result.verdicts.raised, strict=True):
        reasons = tuple(reason for reason, on in zip(REASONS, raised, strict=True) if on)
        if track in restarted and IDENTITY_SWITCH not in reasons:
            reasons += (IDENTITY_SWITCH,)
        rows.append(reasons)
    return rows
