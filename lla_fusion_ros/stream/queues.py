"""Where messages wait: bounded, the newest win, every loss is counted. Safe to fill from one thread and empty
from another."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Generic, Protocol, TypeVar

from lla_fusion_ros.messages.detections import Detections
from lla_fusion_ros.messages.images import CompressedImageMessage, ImageMessage
from lla_fusion_ros.stream.frames import CameraFrame
from lla_fusion_ros.stream.pairing import Limits, Misfit, StampMatcher
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.tally import Tally

SECOND = 1_000_000_000
MEGABYTE = 1_000_000
Picture = ImageMessage | CompressedImageMessage


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
        limits = image_limits(settings)
        self._matchers: dict[str, StampMatcher[Picture, Detections]] = {
            camera: StampMatcher(limits, round(offsets.get(camera, 0.0) * SECOND)) for camera in cameras
        }

    def configure(self, settings: StreamSettings) -> None:
        """New settings from the next message on."""
        self.ready.depth = settings.queue_depth
        for matcher in self._matchers.values():
            matcher.limits = image_limits(settings)

    def offer_image(
        self, camera: str, image: Picture, now: int | None = None, received: int | None = None
    ) -> bool:
        """True where this image completed a frame; `now`, `received`: see `pairing`."""
        self._tally.add(camera, "images")
        arrived = time.monotonic_ns() if now is None else now
        pair = self._matchers[camera].add_first(image.header.stamp, image, arrived, len(image.data), received)
        return self._line_up(camera, pair)

    def offer_detections(
        self, camera: str, detections: Detections, now: int | None = None, received: int | None = None
    ) -> bool:
        """True where these detections completed a frame; `now` as for images."""
        self._tally.add(camera, "detections")
        arrived = time.monotonic_ns() if now is None else now
        stamp, size = detections.header.stamp, detections.nbytes
        return self._line_up(
            camera, self._matchers[camera].add_second(stamp, detections, arrived, size, received)
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
        """Messages of a camera that wait for their partner, and frames that wait for the networks."""
        images, detections = self._matchers[camera].waiting
        frames = self.ready.waiting(camera)
        return {"waiting_images": images, "waiting_detections": detections, "waiting_frames": frames}

    def hint(self, camera: str) -> str:
        """What the last detections without an image suggest; empty where none were lost."""
        matcher = self._matchers[camera]
        return "" if matcher.misfit is None else _hint(camera, matcher.misfit, matcher.limits)

    def clear(self) -> None:
        """Forget what waits."""
        self.ready.clear()
        for matcher in self._matchers.values():
            matcher.clear()

    def _count_losses(self, camera: str) -> None:
        """An image without boxes is no loss: nothing was seen in it."""
        losses = self._matchers[camera].take_losses()
        if losses["first"]:
            self._tally.add(camera, "images_without_detections", losses["first"])
        reasons = {
            "detections_without_image": losses["second"],
            "detections_too_late": losses["second_late"],
            "detections_before_image": losses["second_early"],
        }
        self._tally.drop(camera, {reason: count for reason, count in reasons.items() if count})

    def _line_up(self, camera: str, pair: tuple[Picture, Detections] | None) -> bool:
        self._count_losses(camera)
        if pair is None:
            return False
        self.ready.put(CameraFrame(camera, *pair))
        return True


def image_limits(settings: StreamSettings) -> Limits:
    """How images and their detections are paired."""
    return Limits(
        tolerance=round(settings.sync_tolerance * SECOND),
        wait=round(settings.sync_wait * SECOND),
        memory=settings.sync_memory * MEGABYTE,
        lead=round(settings.sync_lead * SECOND),
    )


def _hint(camera: str, misfit: Misfit, limits: Limits) -> str:
    seconds = misfit.nanoseconds / SECOND
    if misfit.loss == "second_early":
        return (
            f"detections come before the image of their stamp, {seconds:.3f} s ahead: where the detector "
            f"stamps late, set {camera}.time_offset to {-seconds:.3f}; where images are slow, raise sync_lead"
        )
    if misfit.loss == "second_late":
        name = "sync_wait" if misfit.nanoseconds > limits.wait else "sync_memory"
        return (
            f"detections come {seconds:.2f} s after their image, which could not wait so long: raise {name}"
        )
    if abs(misfit.nanoseconds) <= limits.tolerance:
        return "detections come twice for the same image: do two detectors send them?"
    return (
        f"the stamps of detections differ by {seconds:+.3f} s from the nearest image's: the detector should "
        f"copy the image's stamp; a fixed difference can be set, {camera}.time_offset: {-seconds:.3f}"
    )
