"""What the report keeps of a run: bounded, however long the run is."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.report.track_table import reasons_of
from lla_fusion_ros.report.truth import Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame

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
    """Of each camera: cameras that take turns would else lose all points but those of one."""
    count: dict[str, int] = {}
    kept = []
    for point in points:
        count[point.camera] = count.get(point.camera, 0) + 1
        if count[point.camera] % 2:
            kept.append(point)
    return kept
