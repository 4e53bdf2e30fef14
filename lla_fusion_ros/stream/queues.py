"""Where messages wait: bounded, the newest win, every loss is counted. Safe to fill from one thread and empty
from another."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Generic, Protocol, TypeVar

from lla_fusion_ros.stream.frames import CameraFrame
from lla_fusion_ros.stream.pairing import StampMatcher
from lla_fusion_ros.stream.settings import StreamSettings
from lla_fusion_ros.stream.tally import Tally
from lla_fusion_ros.wire.detections import Detections
from lla_fusion_ros.wire.images import CompressedImageMessage, ImageMessage

SECOND = 1_000_000_000


class _OfCamera(Protocol):
    @property
    def camera(self) -> str: ...


Item = TypeVar("Item", bound=_OfCamera)


class BoundedQueue(Generic[Item]):
    """Frames in the order they came, at most `depth` of each camera; when full, its oldest goes."""

    def __init__(self, depth: int, tally: Tally) -> None:
        self.depth = depth
        self._tally = tally
        self._items: deque[Item] = deque()
        self._waiting: Counter[str] = Counter()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        with self._lock:
            while self._waiting[item.camera] >= self.depth:
                oldest = next(waiting for waiting in self._items if waiting.camera == item.camera)
                self._items.remove(oldest)
                self._waiting[item.camera] -= 1
                self._tally.drop(item.camera, {"queue_full": 1})
            self._items.append(item)
            self._waiting[item.camera] += 1

    def take(self, most: int) -> list[Item]:
        """The frames that have waited longest, in the order they came."""
        with self._lock:
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._waiting.subtract(Counter(item.camera for item in taken))
        return taken

    def waiting(self, camera: str) -> int:
        return self._waiting[camera]

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
            self._waiting.clear()


class FrameQueue:
    """Pairs images with detections, camera by camera, and lines up the pairs.

    Args:
        time_offsets: seconds by camera, added to the stamps of its detections before pairing.
    """

    def __init__(
        self,
        cameras: Sequence[str],
        settings: StreamSettings,
        tally: Tally,
        time_offsets: Mapping[str, float] | None = None,
    ) -> None:
        offsets = time_offsets or {}
        self.ready: BoundedQueue[CameraFrame] = BoundedQueue(settings.queue_depth, tally)
        self._tally = tally
        self._matchers: dict[str, StampMatcher[ImageMessage | CompressedImageMessage, Detections]] = {
            camera: StampMatcher(
                round(settings.sync_tolerance * SECOND),
                settings.sync_queue,
                round(offsets.get(camera, 0.0) * SECOND),
            )
            for camera in cameras
        }

    def configure(self, settings: StreamSettings) -> None:
        """New tolerance and depth from the next message on; waiting lines keep their length."""
        self.ready.depth = settings.queue_depth
        for matcher in self._matchers.values():
            matcher.tolerance = round(settings.sync_tolerance * SECOND)

    def offer_image(self, camera: str, image: ImageMessage | CompressedImageMessage) -> bool:
        """True where this image completed a frame."""
        matcher = self._matchers[camera]
        before = matcher.unpaired_first, matcher.unpaired_second
        pair = matcher.add_first(image.header.stamp, image)
        self._tally.add(camera, "images")
        self._count_unpaired(camera, *before)
        return self._line_up(camera, pair)

    def offer_detections(self, camera: str, detections: Detections) -> bool:
        """True where these detections completed a frame."""
        matcher = self._matchers[camera]
        before = matcher.unpaired_first, matcher.unpaired_second
        pair = matcher.add_second(detections.header.stamp, detections)
        self._tally.add(camera, "detections")
        self._count_unpaired(camera, *before)
        return self._line_up(camera, pair)

    def waiting(self, camera: str) -> dict[str, int]:
        """Messages of a camera that wait for their partner, and frames that wait for the networks."""
        images, detections = self._matchers[camera].waiting
        frames = self.ready.waiting(camera)
        return {"waiting_images": images, "waiting_detections": detections, "waiting_frames": frames}

    def clear(self) -> None:
        """Forget what waits."""
        self.ready.clear()
        for matcher in self._matchers.values():
            matcher.clear()

    def _count_unpaired(self, camera: str, images_before: int, detections_before: int) -> None:
        """An image without boxes is no loss: nothing was seen in it."""
        matcher = self._matchers[camera]
        if images := matcher.unpaired_first - images_before:
            self._tally.add(camera, "images_without_detections", images)
        if detections := matcher.unpaired_second - detections_before:
            self._tally.drop(camera, {"detections_without_image": detections})

    def _line_up(
        self, camera: str, pair: tuple[ImageMessage | CompressedImageMessage, Detections] | None
    ) -> bool:
        if pair is None:
            return False
        self.ready.put(CameraFrame(camera, *pair))
        return True
