"""A recorded live run, frame by frame in the order of fusion: compared with offline fusion, as a video."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics, find_cameras
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.contract import FUSED_CLASSES
from lla_fusion_ros.messages.detections import Detections, parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.replay.sources import bag_views, geometry_inputs, make_perception, offer_geometry
from lla_fusion_ros.stream.frame_messages import annotated_message
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings

Key = tuple[str, int]  # frame_id and stamp: what names a frame
TrueIds = dict[tuple[str, int], dict[tuple[float, ...], str]]  # camera and stamp -> box -> id

_TILE_WIDTH = 480  # pixels; the whole drive stays below 10 MB
_WAITS = 3  # frames of the others after which a camera that sends nothing is shown dark


class RecordedRun:
    """Views of a recorded live run in the order of its `/fused_classes`, with the pixels it was fed.

    Args:
        true_ids: what the boxes really are, by camera and stamp, where the bag does not tell the nodes.
    """

    def __init__(
        self, recording: Bag, fed: Bag, bundle: Bundle, settings: FusionSettings, true_ids: TrueIds
    ) -> None:
        self._true_ids = true_ids
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
                yield [replace(frame, pixels=pixels, track_ids=self._named(frame))]

    def _named(self, frame: ViewFrame) -> tuple[str, ...]:
        """The ids that the truth is told by: those of the boxes, which come back as they were sent."""
        known = self._true_ids.get((frame.camera, frame.header.stamp))
        if known is None:
            return frame.track_ids
        return tuple(known.get(tuple(box), "") for box in frame.bbox[:, [0, 1, 3, 4]].tolist())


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


class VideoSink:
    """Writes one picture per moment: a tile for each camera, the newest image of each."""

    def __init__(
        self, path: Path, cameras: tuple[str, ...], class_names: tuple[str, ...], rate: float
    ) -> None:
        self.path = path
        self._cameras = cameras
        self._names = class_names
        self._rate = rate
        self._tiles: dict[str, np.ndarray] = {}
        self._age: dict[str, int] = {}
        self._writer: cv2.VideoWriter | None = None

    def __enter__(self) -> VideoSink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._flush()
            self._writer.release()

    def take(self, time: int, fused: FusedFrame) -> None:
        frame = fused.frame
        if frame.pixels is None:
            return
        if frame.camera in self._tiles and not self._age[frame.camera]:
            self._flush()
        # the very picture of the `annotated` topic
        picture = np.array(parse_image(annotated_message(fused, self._names).data).pixels().array)
        cv2.putText(
            picture, frame.camera, (10, 26), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (245, 245, 245), 2, cv2.LINE_AA
        )
        height = round(picture.shape[0] * _TILE_WIDTH / picture.shape[1])
        tile = cv2.resize(picture, (_TILE_WIDTH, height), interpolation=cv2.INTER_AREA)
        self._tiles[frame.camera] = tile
        self._age[frame.camera] = 0

    def _flush(self) -> None:
        """Write the moment that is complete; a camera that stays silent turns dark."""
        height, width = next(iter(self._tiles.values())).shape[:2]
        tiles = []
        for camera in self._cameras:
            tile = self._tiles.get(camera)
            if tile is None or self._age[camera] > _WAITS:
                tile = np.zeros((height, width, 3), np.uint8)
                text = f"{camera}: no image"
                cv2.putText(
                    tile, text, (10, 26), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (90, 90, 230), 2, cv2.LINE_AA
                )
            tiles.append(cv2.resize(tile, (width, height)) if tile.shape[:2] != (height, width) else tile)
        picture = np.concatenate(tiles, axis=1)
        if self._writer is None:
            # mp4v is what every OpenCV build can write
            code = cv2.VideoWriter.fourcc(*"mp4v")
            size = picture.shape[1], picture.shape[0]
            self._writer = cv2.VideoWriter(str(self.path), code, self._rate, size)
        self._writer.write(picture)
        for camera in self._age:
            self._age[camera] += 1
