"""What `lla-fusion info BAG` tells: topics, cameras, tracks, and whether the bag can be fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.wire.detections import parse_detections


@dataclass(frozen=True, slots=True)
class CameraDescription:
    """A camera that can be fused; `kind` is "images" or "views"."""

    name: str
    kind: str
    topics: tuple[str, ...]
    frames: int
    detections: int
    without_id: int
    tracks: int


@dataclass(frozen=True, slots=True)
class BagDescription:
    """Attributes:
    topics: name, type and number of messages.
    tracks: track ids over all cameras.
    shared_tracks: ids that more than one camera reports.
    missing: what keeps the bag, or a part of it, from being fused.
    notes: what is amiss with the files and what was lost.
    """

    path: str
    seconds: float
    messages: int
    topics: tuple[tuple[str, str, int], ...]
    cameras: tuple[CameraDescription, ...]
    tracks: int
    shared_tracks: int
    can_be_fused: bool
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def describe_bag(path: Path | str) -> BagDescription:
    """Look through a bag; reads all detections but decodes no image."""
    with Bag(path) as bag:
        wiring = find_cameras(bag.summary)
        cameras = []
        seen: Counter[str] = Counter()
        missing = list(wiring.missing)
        for each in wiring.cameras:
            topics = (each.image, each.detections)
            cameras.append(_camera(bag, each.name, "images", topics, each.detections, seen, missing))
        known = {each.name for each in wiring.cameras}
        for view in wiring.views:
            topics = (view.views, view.embeddings)
            counter = Counter() if view.name in known else seen
            cameras.append(_camera(bag, view.name, "views", topics, view.views, counter, missing))
        usable = any(camera.tracks for camera in cameras)
        return BagDescription(
            path=str(path),
            seconds=bag.summary.duration,
            messages=bag.summary.count,
            topics=tuple((topic.name, topic.type, topic.count) for topic in bag.summary.topics),
            cameras=tuple(cameras),
            tracks=len(seen),
            shared_tracks=sum(count > 1 for count in seen.values()),
            can_be_fused=usable,
            missing=tuple(missing),
            notes=tuple(bag.notes),
        )


def why_nothing_is_tracked(bag: Bag, topics: Sequence[str]) -> str | None:
    """None at the first detection with an id; else what keeps the detections from being fused."""
    detections = 0
    for message in bag.messages(topics):
        try:
            ids = parse_detections(message.data).ids
        except InputError:
            continue
        if any(ids):
            return None
        detections += len(ids)
    return _no_tracks(", ".join(topics), detections)


def _no_tracks(where: str, detections: int) -> str:
    if not detections:
        return f"{where} lists no object"
    return (
        f"{where} has {detections} detections without track ids: "
        "run a tracker that fills Detection2D.id behind the detector and record its output"
    )


def _camera(
    bag: Bag,
    name: str,
    kind: str,
    topics: tuple[str, ...],
    detections_topic: str,
    seen: Counter[str],
    missing: list[str],
) -> CameraDescription:
    frames = detections = without_id = 0
    ids: set[str] = set()
    for message in bag.messages([detections_topic]):
        try:
            parsed = parse_detections(message.data)
        except InputError:
            continue
        frames += 1
        detections += len(parsed)
        without_id += sum(not track for track in parsed.ids)
        ids.update(track for track in parsed.ids if track)
    seen.update(ids)
    if not ids:
        missing.append(_no_tracks(detections_topic, detections))
    return CameraDescription(name, kind, topics, frames, detections, without_id, len(ids))
