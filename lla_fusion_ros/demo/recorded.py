"""A recorded live run, frame by frame in the order of fusion: compared with offline fusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics, find_cameras
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.contract import FUSED_CLASSES
from lla_fusion_ros.messages.detections import Detections, parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.replay.sources import bag_views, geometry_inputs, make_perception, offer_geometry
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings

Key = tuple[str, int]  # frame_id and stamp: what names a frame


class RecordedRun:
    """Views of a recorded live run in the order of its `/fused_classes`, with the pixels it was fed."""

    def __init__(self, recording: Bag, fed: Bag, bundle: Bundle, settings: FusionSettings) -> None:
        self._fed = fed
        self.live: dict[Key, Detections] = {}
        self._order: list[Key] = []
        for message in recording.messages(["/" + FUSED_CLASSES]):
            detections = parse_detections(message.data, with_scores=True)
            key = detections.header.frame_id, detections.header.stamp
            self.live[key] = detections
            self._order.append(key)
        views: Sequence[ViewTopics] = find_cameras(recording.summary).views
        self.perception = make_perception(bundle, views, StreamSettings(), settings)
        self._views = bag_views(recording, views, self.perception, bundle)
        self._cameras: Sequence[CameraTopics] = find_cameras(fed.summary).cameras
        for message in fed.messages(geometry_inputs(self._cameras)):  # the live node heard it, too
            offer_geometry(self.perception, self._cameras, message)

    def __iter__(self) -> Iterator[list[ViewFrame]]:
        # A recorder hears topics in any order, so the views are collected first; a demo has few of them.
        views = {
            (frame.header.frame_id, frame.header.stamp): frame for batch in self._views for frame in batch
        }
        pictures = _Pictures(self._fed, self._cameras)
        for key in self._order:
            if frame := views.get(key):
                pixels = pictures.take(frame.camera, frame.header.stamp)
                yield [replace(frame, pixels=pixels)]


class _Pictures:
    """Images of a bag by camera and stamp, asked for roughly in order; only the last few are kept."""

    _KEPT = 64

    def __init__(self, bag: Bag, cameras: Sequence[CameraTopics]) -> None:
        self._cameras = {camera.image: camera for camera in cameras}
        self._messages = bag.messages(self._cameras)
        self._known: dict[tuple[str, int], Pixels] = {}

    def take(self, camera: str, stamp: int) -> Pixels | None:
        while (camera, stamp) not in self._known:
            message = next(self._messages, None)
            if message is None:
                return None
            topics = self._cameras[message.topic]
            try:
                parse = parse_compressed_image if topics.compressed else parse_image
                image = parse(message.data)
                self._known[topics.name, image.header.stamp] = image.pixels()
            except InputError:
                continue
            while len(self._known) > self._KEPT:
                del self._known[next(iter(self._known))]
        return self._known.pop((camera, stamp))


class AgreementSink:
    """How far the offline fusion of the recorded views is from what the live node published."""

    def __init__(self, live: dict[Key, Detections]) -> None:
        self._live = live
        self.frames = 0
        self.largest = 0.0

    def take(self, time: int, fused: FusedFrame) -> None:
        header = fused.frame.header
        said = self._live.get((header.frame_id, header.stamp))
        if said is None or said.ids != fused.result.ids:
            return
        self.frames += 1
        for row, scores in enumerate(said.scores):
            published = np.zeros(fused.result.pmf.shape[1])
            for name, score in scores:
                published[int(name)] = score
            self.largest = max(self.largest, float(np.abs(published - fused.result.pmf[row]).max()))
