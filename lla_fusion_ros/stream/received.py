"""Views that were computed elsewhere: `views` and `views/embeddings` messages, paired and checked.

The embeddings of a frame are a 32FC1 image with a row per detection: the logits of all networks (networks x
classes), then the features of all networks (networks x features). They mean nothing to another model file,
so a latched VisionInfo beside them names the bundle they come from; frames wait for it, and those of another
bundle are refused.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lla_fusion_ros.messages.detections import Detections
from lla_fusion_ros.messages.images import ImageMessage, matrix_of
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.pairing import Limits, StampMatcher
from lla_fusion_ros.stream.queues import BoundedQueue, image_limits
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import QUALITIES, Views

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
        """The inverse of `pack`; rows of another width are refused."""
        width = self.networks * (self.classes + self.features)
        if rows.shape[1] not in (width, width + len(QUALITIES)):
            raise InputError(f"embeddings have {rows.shape[1]} columns, this bundle needs {width}")
        split = self.networks * self.classes
        return Views(
            rows[:, :split].reshape(-1, self.networks, self.classes),
            rows[:, split:width].reshape(-1, self.networks, self.features),
            rows[:, width:] if rows.shape[1] > width else None,
        )


class ViewQueue:
    """Pairs `views` with `embeddings`, camera by camera, and lines up those of this bundle."""

    def __init__(
        self,
        cameras: Sequence[str],
        shape: ViewShape,
        bundle_hash: str,
        settings: StreamSettings,
        tally: Tally,
    ) -> None:
        self.ready: BoundedQueue[ViewFrame] = BoundedQueue(settings.queue_depth, tally)
        self.foreign: dict[str, str] = {}  # camera -> the other bundle its views come from
        self._shape = shape
        self._hash = bundle_hash
        self._tally = tally
        self._known: set[str] = set()
        self._matchers: dict[str, StampMatcher[Detections, ImageMessage]] = {
            camera: StampMatcher(_limits(settings)) for camera in cameras
        }
        # frames that came before the latched message that says whose they are
        self._unsure: dict[str, deque[ViewFrame]] = {camera: deque(maxlen=MOST_UNSURE) for camera in cameras}

    def configure(self, settings: StreamSettings) -> None:
        """New settings from the next message on."""
        self.ready.depth = settings.queue_depth
        for matcher in self._matchers.values():
            matcher.limits = _limits(settings)

    def offer_bundle(self, camera: str, location: str) -> bool:
        """`database_location` of the camera's VisionInfo; True where frames that waited for it are ready."""
        theirs = location.removeprefix(HASH_PREFIX)
        if theirs != self._hash:
            self.foreign[camera] = theirs
            self._known.discard(camera)
            self._refuse(camera, len(self._unsure[camera]))
            self._unsure[camera].clear()
            return False
        self.foreign.pop(camera, None)
        self._known.add(camera)
        waiting = list(self._unsure[camera])
        self._unsure[camera].clear()
        for frame in waiting:
            self._tally.add(camera, "frames")
            self.ready.put(frame)
        return bool(waiting)

    def offer_views(
        self, camera: str, detections: Detections, now: int | None = None, received: int | None = None
    ) -> bool:
        """True where these completed a frame; `now`, `received`: see `pairing`."""
        self._tally.add(camera, "views_messages")
        arrived = time.monotonic_ns() if now is None else now
        stamp, size = detections.header.stamp, detections.nbytes
        return self._line_up(
            camera, self._matchers[camera].add_first(stamp, detections, arrived, size, received)
        )

    def offer_embeddings(
        self, camera: str, embeddings: ImageMessage, now: int | None = None, received: int | None = None
    ) -> bool:
        """True where these completed a frame; `now` as for views."""
        arrived = time.monotonic_ns() if now is None else now
        stamp, size = embeddings.header.stamp, len(embeddings.data)
        return self._line_up(
            camera, self._matchers[camera].add_second(stamp, embeddings, arrived, size, received)
        )

    def expire(self) -> None:
        """Let go of what has waited for too long; for a live node whose cameras fall silent."""
        for camera, matcher in self._matchers.items():
            matcher.expire(time.monotonic_ns())
            self._count_losses(camera)

    def finish(self) -> None:
        """No message comes any more: count what waits for its partner in vain."""
        for camera, matcher in self._matchers.items():
            matcher.finish()
            self._count_losses(camera)

    def waiting(self, camera: str) -> dict[str, int]:
        """Messages of a camera that wait for their partner, and frames that wait for fusion."""
        views, embeddings = self._matchers[camera].waiting
        frames = len(self._unsure[camera]) + self.ready.waiting(camera)
        return {"waiting_views": views, "waiting_embeddings": embeddings, "waiting_frames": frames}

    def clear(self) -> None:
        """Forget what waits."""
        self.ready.clear()
        for camera, matcher in self._matchers.items():
            matcher.clear()
            self._unsure[camera].clear()

    def _count_losses(self, camera: str) -> None:
        losses = self._matchers[camera].take_losses()
        reasons = {
            "views_without_embeddings": losses["first"],
            "embeddings_without_views": losses["second"] + losses["second_late"],
        }
        self._tally.drop(camera, {reason: count for reason, count in reasons.items() if count})

    def _refuse(self, camera: str, count: int) -> None:
        if count:
            self._tally.drop(camera, {"other_bundle": count})

    def _line_up(self, camera: str, pair: tuple[Detections, ImageMessage] | None) -> bool:
        self._count_losses(camera)
        if pair is None:
            return False
        if camera in self.foreign:
            self._refuse(camera, 1)
            return False
        detections, embeddings = pair
        try:
            views = self._shape.unpack(matrix_of(embeddings))
            views.check(self._shape.networks, self._shape.classes, self._shape.features)
            if len(views) != len(detections):
                raise InputError(f"{len(detections)} detections but {len(views)} rows of embeddings")
        except InputError:
            self._tally.drop(camera, {"bad_embeddings": 1})
            return False
        frame = ViewFrame(camera, detections.header, detections.ids, detections.bbox, views)
        if camera not in self._known:
            if len(self._unsure[camera]) == self._unsure[camera].maxlen:
                self._tally.drop(camera, {"unknown_bundle": 1})
            self._unsure[camera].append(frame)
            return False
        self._tally.add(camera, "frames")
        self.ready.put(frame)
        return True


def _limits(settings: StreamSettings) -> Limits:
    """Both messages of a frame come from one node with one stamp, in either order."""
    return replace(image_limits(settings), tolerance=0, lead=None)
