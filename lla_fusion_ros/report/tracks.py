"""What is kept of a run, track by track: for the report, bounded however long the run is; for programs, a
short record of every track and warning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.report.truth import Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.warnings.result import IDENTITY_SWITCH, REASONS

MOST_POINTS = 480  # per track; beyond that every second one of each camera goes
MOST_THUMBNAILS = 10  # per track and camera
MOST_TRACKS = 400
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


@dataclass(slots=True)
class Thumbnail:
    stamp: int
    camera: str
    jpeg: bytes


@dataclass(slots=True)
class Timeline:
    """All that is kept of one track; every number of the report about it comes from here.

    Attributes:
        id: what the report calls it; track_id: what the tracker calls it.
        views, flips, single_flips: over all views, also those not kept as points.
        seen: views by camera; points and thumbnails are thinned out of each camera's views alike.
        reasons: every warning the track ever had.
        warned_views: how many views it was warned for.
        changes: how often its class changed, where it is one that does.
        members: tracks that are this object, and since when; empty where it is one track.
    """

    id: str
    track_id: str
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

    def absorb(self, other: Timeline) -> None:
        """Take in what another track showed before it turned out to be the same object."""
        self.points = sorted([*self.points, *other.points], key=lambda point: point.stamp)
        self.thumbnails = sorted([*self.thumbnails, *other.thumbnails], key=lambda each: each.stamp)
        self.views += other.views
        self.flips += other.flips
        self.single_flips += other.single_flips
        self.warned_views += other.warned_views
        self.changes += other.changes
        for own, theirs in ((self.seen, other.seen), (self.reasons, other.reasons)):
            for key, count in theirs.items():
                own[key] = own.get(key, 0) + count

    @property
    def interest(self) -> tuple[bool, int, int]:
        """What is worth keeping: warned tracks, then those that flicker, then long ones."""
        return bool(self.reasons), self.single_flips, self.views


class TimelineSink:
    """Takes every fused frame and keeps the story of each track."""

    def __init__(self, truth: Truth | None = None) -> None:
        self.truth = truth
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
        wanted: list[tuple[Timeline, int]] = []
        for row, track in enumerate(result.ids):
            timeline = self._timeline(track, frame.track_ids[result.kept[row]])
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
            )
            _extend(timeline, point)
            stride = timeline.thumbnail_stride.setdefault(frame.camera, 1)
            if frame.pixels is not None and (timeline.seen[frame.camera] - 1) % stride == 0:
                wanted.append((timeline, result.kept[row]))
        if wanted and frame.pixels is not None:
            self._picture(frame, frame.pixels, wanted)

    def _timeline(self, name: str, track: str) -> Timeline:
        if name not in self.tracks:
            if len(self.tracks) >= MOST_TRACKS:
                dullest = min(self.tracks.values(), key=lambda track: track.interest)
                del self.tracks[dullest.id]
                self.forgotten += 1
            self.tracks[name] = Timeline(name, track)
        return self.tracks[name]

    def _picture(self, frame: ViewFrame, pixels: Pixels, wanted: list[tuple[Timeline, int]]) -> None:
        boxes = frame.bbox[[row for _, row in wanted]][:, [0, 1, 3, 4]]
        crops = cut_crops(pixels, boxes, THUMBNAIL, _MARGIN)
        for (timeline, _), crop in zip(wanted, crops, strict=True):
            bgr = np.ascontiguousarray(crop[..., ::-1])
            jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 78])[1].tobytes()
            timeline.thumbnails.append(Thumbnail(frame.header.stamp, frame.camera, jpeg))
            own = [each for each in timeline.thumbnails if each.camera == frame.camera]
            if len(own) > MOST_THUMBNAILS:
                others = [each for each in timeline.thumbnails if each.camera != frame.camera]
                timeline.thumbnails = others + own[::2]
                timeline.thumbnail_stride[frame.camera] *= 2


def _extend(timeline: Timeline, point: Point) -> None:
    top = int(point.pmf.argmax())
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


@dataclass(slots=True)
class _Track:
    id: str
    first: int
    last: int = 0
    views: dict[str, int] = field(default_factory=dict)  # by camera
    top: int = 0
    probability: float = 0.0
    entropy: float = 0.0
    warned_views: int = 0
    warnings: list[dict[str, Any]] = field(default_factory=list)
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)  # by reason


class TrackTable:
    """A sink with one short record per track."""

    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = class_names
        self._tracks: dict[str, _Track] = {}

    def take(self, time: int, fused: FusedFrame) -> None:
        camera, stamp = fused.frame.camera, fused.frame.header.stamp
        for row, (name, reasons) in enumerate(zip(fused.result.ids, reasons_of(fused), strict=True)):
            track = self._tracks.setdefault(name, _Track(name, stamp))
            track.last = stamp
            track.views[camera] = track.views.get(camera, 0) + 1
            pmf = fused.result.pmf[row]
            track.top = int(pmf.argmax())
            track.probability = float(pmf[track.top])
            track.entropy = float(fused.result.verdicts.entropy[row])
            track.warned_views += bool(reasons)
            _follow(track, reasons, camera, stamp)

    def tracks(self) -> list[dict[str, Any]]:
        """Ready for JSON, in order of appearance; class, probability and entropy (nats) as last shown."""
        return [
            {
                "id": track.id,
                "views": track.views,
                "first": track.first / 1e9,
                "last": track.last / 1e9,
                "class": self._names[track.top],
                "probability": track.probability,
                "entropy": track.entropy,
                "warned_views": track.warned_views,
                "reasons": sorted({warning["reason"] for warning in track.warnings}),
            }
            for track in self._tracks.values()
        ]

    def warnings(self) -> list[dict[str, Any]]:
        """Every warning from its first view to its last, in time order."""
        every = [warning for track in self._tracks.values() for warning in track.warnings]
        return sorted(every, key=lambda warning: warning["first"])


def _follow(track: _Track, reasons: Sequence[str], camera: str, stamp: int) -> None:
    """A warning goes on while every view of the track has it."""
    for gone in set(track.standing) - set(reasons):
        del track.standing[gone]
    for reason in reasons:
        if reason not in track.standing:
            warning = {
                "track": track.id,
                "reason": reason,
                "camera": camera,
                "first": stamp / 1e9,
                "views": 0,
            }
            track.standing[reason] = warning
            track.warnings.append(warning)
        track.standing[reason]["last"] = stamp / 1e9
        track.standing[reason]["views"] += 1
