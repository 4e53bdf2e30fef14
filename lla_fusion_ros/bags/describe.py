"""What `lla-fusion info BAG` tells: topics, cameras, tracks, and whether the bag can be fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics, find_cameras
from lla_fusion_ros.detections.adapter import adapter_for
from lla_fusion_ros.detections.frame import FrameDetections
from lla_fusion_ros.messages.contract import DETECTIONS, STATIC_TRANSFORMS, TRANSFORMS
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally


@dataclass(frozen=True, slots=True)
class CameraDescription:
    """A camera that can be fused.

    Attributes:
        kind: "images" or "views".
        frames: messages with detections, or views, that can be read.
        without_id: detections that the messages give no id.
        tracks: of the messages, or of the built-in tracker.
        chosen: message type, where the ids come from and what they mean; empty where no box says.
    """

    name: str
    kind: str
    topics: tuple[str, ...]
    frames: int
    detections: int
    without_id: int
    tracks: int
    chosen: str


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
    """Look through a bag; reads all detections, and decodes one image of each camera."""
    with Bag(path) as bag:
        wiring = find_cameras(bag.summary)
        cameras: list[CameraTopics | ViewTopics] = [*wiring.cameras, *wiring.views]
        looked = [_Looked(bag, each) for each in cameras]
        names = {each.name for each in wiring.cameras}
        # views of a camera whose images are there, too, show the same tracks
        first = [each for each in looked if each.about.kind == "images" or each.about.name not in names]
        seen = Counter(name for each in first for name in each.ids)
        shared = sum(count > 1 for count in seen.values())
        homeless = _boxes_without_geometry(bag, wiring.cameras)
        notes = [*bag.notes, *(each.trouble for each in looked if each.trouble)]
        if wiring.objects:
            notes.append(f"boxes that the objects of {wiring.objects} overlap are these in every camera")
        if any(each.of_camera for each in first) and (
            sentence := _geometry(bag, wiring.cameras or wiring.views)
        ):
            notes.append(sentence)
        if shared and any(each.of_camera for each in first):
            notes.append(
                f"{shared} ids are used by several cameras: where an id is one object in all of them, set "
                "identity to global"
            )
        return BagDescription(
            path=str(path),
            seconds=bag.summary.duration,
            messages=bag.summary.count,
            topics=tuple((topic.name, topic.type, topic.count) for topic in bag.summary.topics),
            cameras=tuple(each.about for each in looked),
            tracks=len(seen) + sum(each.about.tracks for each in first if not each.ids),
            shared_tracks=shared,
            can_be_fused=any(each.about.tracks and each.about.name not in homeless for each in looked),
            missing=(
                *wiring.missing,
                *homeless.values(),
                *(_no_tracks(each.about) for each in looked if not each.about.tracks),
            ),
            notes=tuple(notes),
        )


def why_nothing_can_be_fused(bag: Bag, cameras: Sequence[CameraTopics] | Sequence[ViewTopics]) -> str | None:
    """None at the first object; else what keeps the detections from being fused."""
    topics = {_boxes_topic(each): each for each in cameras}
    for message in bag.messages(topics):
        if _read(topics[message.topic], message.data):
            return None
    return f"{', '.join(topics)} lists no object"


class _Looked:
    """One camera, looked through.

    Attributes:
        ids: that the messages give.
        of_camera: an id is an object of this camera.
        trouble: what would be fused wrongly.
    """

    def __init__(self, bag: Bag, camera: CameraTopics | ViewTopics) -> None:
        identity = Identity([camera.name], StreamSettings(), Tally())
        self.ids: set[str] = set()
        objects: set[str] = set()
        frames = detections = without_id = 0
        size = _image_size(bag, camera)
        for message in bag.messages([_boxes_topic(camera)]):
            found = _read(camera, message.data)
            if found is None:
                continue
            frames += 1
            detections += len(found)
            own = found.ids if found.ids is not None else ("",) * len(found)
            without_id += sum(not name for name in own)
            if isinstance(camera, ViewTopics):  # the views name objects already
                objects.update(own)
            elif camera.crops:
                objects.update(identity.name_crops(camera.name, f"{message.type}, crops", own)[1])
            else:
                objects.update(identity.name(camera.name, found.header.stamp, camera.type, found, size)[1])
            self.ids.update(own)
        self.ids.discard("")
        self.trouble = identity.troubles().get(camera.name, "")
        chosen = identity.chosen.get(camera.name)
        self.of_camera = chosen is not None and chosen.scope == "camera"
        kind = "views" if isinstance(camera, ViewTopics) else "images"
        self.about = CameraDescription(
            camera.name,
            kind,
            _topics(camera),
            frames,
            detections,
            without_id,
            len(objects - {""}),
            "" if chosen is None else str(chosen),
        )


def _topics(camera: CameraTopics | ViewTopics) -> tuple[str, ...]:
    if isinstance(camera, ViewTopics):
        return camera.views, camera.embeddings
    return (camera.image,) if camera.crops else (camera.image, camera.detections)


def _boxes_topic(camera: CameraTopics | ViewTopics) -> str:
    return camera.views if isinstance(camera, ViewTopics) else camera.detections or camera.image


def _read(camera: CameraTopics | ViewTopics, data: bytes) -> FrameDetections | None:
    """The detections in a message, or the one that a crop is; None where it is damaged."""
    try:
        if isinstance(camera, CameraTopics) and camera.crops:
            header = (parse_compressed_image if camera.compressed else parse_image)(data).header
            return FrameDetections(header, np.zeros((1, 5)), (header.frame_id,), None, "camera")
        adapter = adapter_for(DETECTIONS if isinstance(camera, ViewTopics) else camera.type)
        assert adapter is not None
        found = adapter.read(data)
    except InputError:
        return None
    if isinstance(found, FrameDetections):
        return found
    # in space: what they are counts here, not where they fall in the image
    return found.in_image(np.zeros((len(found), 5)), range(len(found)))


def _image_size(bag: Bag, camera: CameraTopics | ViewTopics) -> tuple[int, int] | None:
    """Width and height of a camera's first image that can be decoded; None where there is none."""
    if isinstance(camera, ViewTopics) or camera.crops:
        return None
    parse = parse_compressed_image if camera.compressed else parse_image
    for message in islice(bag.messages([camera.image]), 5):
        try:
            height, width = parse(message.data).pixels().shape
            return width, height
        except InputError:
            continue
    return None


def _geometry(bag: Bag, cameras: Sequence[CameraTopics | ViewTopics]) -> str:
    """Whether objects of several cameras can be joined; empty where there is one camera."""
    if len(cameras) < 2:
        return ""
    lacking = [camera.name for camera in cameras if not camera.info]
    if lacking:
        return f"cameras stay apart: no camera_info of {', '.join(lacking)} is recorded beside its images"
    known = {topic.name for topic in bag.summary.topics if topic.count}
    if known.isdisjoint((TRANSFORMS, STATIC_TRANSFORMS)):
        return f"cameras stay apart: neither {TRANSFORMS} nor {STATIC_TRANSFORMS} is recorded"
    return "camera_info and transforms are recorded: objects of several cameras are joined"


def _boxes_without_geometry(bag: Bag, cameras: Sequence[CameraTopics]) -> dict[str, str]:
    """Cameras whose boxes in space cannot be projected into their images, and what is not recorded."""
    known = {topic.name for topic in bag.summary.topics if topic.count}
    lacking = {}
    for camera in cameras:
        adapter = adapter_for(camera.type)
        if adapter is not None and adapter.in_space:
            if not camera.info:
                lacking[camera.name] = (
                    f"{camera.detections} is in space, and no camera_info of {camera.name} is recorded"
                )
            elif known.isdisjoint((TRANSFORMS, STATIC_TRANSFORMS)):
                lacking[camera.name] = f"{camera.detections} is in space, and no transforms are recorded"
    return lacking


def _no_tracks(camera: CameraDescription) -> str:
    if not camera.detections:
        return f"{camera.topics[-1]} lists no object"
    return f"{camera.topics[0]} has {camera.detections} detections, and none of them can be tracked"
