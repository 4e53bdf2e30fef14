"""Views that were computed elsewhere: `views` and `views/embeddings` messages, paired and checked.

The embeddings of a frame are a 32FC1 image with a row per detection: the logits of all networks (networks x
classes), then the features of all networks (networks x features). They mean nothing to another model file,
so a latched VisionInfo beside them names the bundle they come from; frames wait for it, and those of another
bundle are refused.

The ids in `views` name objects: who cut the crops out has decided what ids mean. Only `identity: camera` has
a say here, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.messages.detections import Detections, parse_detections
from lla_fusion_ros.messages.images import ImageMessage, matrix_of, parse_image
from lla_fusion_ros.messages.status import parse_vision_info
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.identity import object_id, track_id
from lla_fusion_ros.stream.pairing import Limits
from lla_fusion_ros.stream.queues import Feed, PairQueue
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import OLDER_QUALITIES, QUALITIES, Views, box_sides

HASH_PREFIX = "sha256:"
MOST_UNSURE = 100  # frames of a camera that wait to be told which bundle they come from


@dataclass(frozen=True, slots=True)
class ViewShape:
    """What one row of embeddings holds."""

    networks: int
    classes: int
    features: int

    def pack(self, views: Views) -> np.ndarray:
        """[views, networks x (classes + features), then the quality of the crops where known] float32"""
        # widths spelt out: a frame without objects has no rows to infer them from
        logits = views.logits.reshape(len(views), self.networks * self.classes)
        features = views.features.reshape(len(views), self.networks * self.features)
        quality = () if views.quality is None else (views.quality,)
        return np.concatenate([logits, features, *quality], axis=1, dtype=np.float32)

    def unpack(self, rows: np.ndarray) -> Views:
        """The inverse of `pack`; rows of another width are refused, qualities they lack are not known."""
        width = self.networks * (self.classes + self.features)
        measured = rows.shape[1] - width
        if measured not in (0, len(OLDER_QUALITIES), len(QUALITIES)):
            raise InputError(f"embeddings have {rows.shape[1]} columns, this bundle needs {width}")
        split = self.networks * self.classes
        quality = np.full((len(rows), len(QUALITIES)), np.nan, np.float32)
        quality[:, :measured] = rows[:, width:]
        return Views(
            rows[:, :split].reshape(-1, self.networks, self.classes),
            rows[:, split:width].reshape(-1, self.networks, self.features),
            quality if measured else None,
        )


class ViewQueue(PairQueue[ViewFrame]):
    """`views` and their `embeddings`, of this bundle only.

    Attributes:
        foreign: camera -> the other bundle its views come from.
    """

    feeds: ClassVar = {
        "views": Feed(parse_detections, "first", "views_messages"),
        "views/embeddings": Feed(parse_image, "second", ""),
        "views/info": Feed(parse_vision_info, "first", ""),  # of no pair, see `offer`
    }
    names: ClassVar = ("views", "embeddings")
    losses: ClassVar = {
        "first": "dropped_views_without_embeddings",
        "second": "dropped_embeddings_without_views",
        "second_late": "dropped_embeddings_without_views",
    }

    def __init__(
        self,
        cameras: Sequence[str],
        shape: ViewShape,
        bundle_hash: str,
        settings: StreamSettings,
        tally: Tally,
    ) -> None:
        super().__init__(cameras, settings, tally)
        self._identity = settings.identity
        self.foreign: dict[str, str] = {}
        self._shape = shape
        self._hash = bundle_hash
        self._known: set[str] = set()
        # frames that came before the latched message that says whose they are
        self._unsure: dict[str, deque[ViewFrame]] = {camera: deque(maxlen=MOST_UNSURE) for camera in cameras}

    def configure(self, settings: StreamSettings) -> None:
        super().configure(settings)
        self._identity = settings.identity

    @staticmethod
    def limits(settings: StreamSettings) -> Limits:
        """Both messages of a frame come from one node with one stamp, in either order."""
        return replace(PairQueue.limits(settings), tolerance=0, lead=None)

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        if topic != "views/info":
            return super().offer(camera, topic, data, now, received)
        info = self.parsed(camera, topic, data)
        return info is not None and self.offer_bundle(camera, info[2].removeprefix(HASH_PREFIX))

    def offer_bundle(self, camera: str, bundle_hash: str) -> bool:
        """Which bundle a camera's views come from; True where frames that waited for it are ready."""
        waiting = list(self._unsure[camera])
        self._unsure[camera].clear()
        if bundle_hash != self._hash:
            self.foreign[camera] = bundle_hash
            self._known.discard(camera)
            self._tally.drop(camera, {"other_bundle": len(waiting)} if waiting else {})
            return False
        self.foreign.pop(camera, None)
        self._known.add(camera)
        for frame in waiting:
            self._tally.add(camera, "frames")
            self.ready.put(frame)
        return bool(waiting)

    def waiting(self, camera: str) -> dict[str, int]:
        counts = super().waiting(camera)
        return {**counts, "waiting_frames": counts["waiting_frames"] + len(self._unsure[camera])}

    def clear(self) -> None:
        super().clear()
        for unsure in self._unsure.values():
            unsure.clear()

    def frame(self, camera: str, first: Detections, second: ImageMessage, completed: int) -> ViewFrame | None:
        if camera in self.foreign:
            self._tally.drop(camera, {"other_bundle": 1})
            return None
        try:
            views = self._shape.unpack(matrix_of(second))
            views.check(self._shape.networks, self._shape.classes, self._shape.features)
            if len(views) != len(first):
                raise InputError(f"{len(first)} detections but {len(views)} rows of embeddings")
        except InputError:
            self._tally.drop(camera, {"bad_embeddings": 1})
            return None
        views = replace(views, size=box_sides(first.bbox))
        ids = first.ids
        if self._identity == "camera":
            ids = tuple(_of_camera(camera, name) for name in ids)
        tracks = tuple(track_id(camera, name) for name in ids)
        frame = ViewFrame(camera, first.header, ids, first.bbox, views, tracks, completed=completed)
        if camera in self._known:
            self._tally.add(camera, "frames")
            return frame
        if len(self._unsure[camera]) == MOST_UNSURE:
            self._tally.drop(camera, {"unknown_bundle": 1})
        self._unsure[camera].append(frame)
        return None


def _of_camera(camera: str, name: str) -> str:
    return object_id(camera, name) if name and track_id(camera, name) == name else name
