"""Where messages wait: bytes in, paired frames out; bounded, the newest win, every loss is counted.

Safe to fill from one thread and empty from another.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from lla_fusion_ros.detections.adapter import image_adapter
from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.messages.cdr import Header, Raw
from lla_fusion_ros.messages.contract import INPUTS
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import (
    CompressedImageMessage,
    ImageMessage,
    parse_compressed_image,
    parse_image,
)
from lla_fusion_ros.stream.frames import CameraFrame, CropFrame, ScoreFrame
from lla_fusion_ros.stream.health import pairing_hint
from lla_fusion_ros.stream.pairing import SECOND, Limits, Loss, StampMatcher
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally

MEGABYTE = 1_000_000


class _OfCamera(Protocol):
    @property
    def camera(self) -> str: ...

    def __len__(self) -> int:
        """How many objects it has."""


Item = TypeVar("Item", bound=_OfCamera)


class BoundedQueue(Generic[Item]):
    """Frames in the order they came, at most `depth` of each camera; when full, its oldest goes."""

    def __init__(self, depth: int, tally: Tally) -> None:
        self.depth = depth
        self._tally = tally
        self._items: deque[Item] = deque()
        self._waiting: Counter[str] = Counter()
        self._last_turn = ""  # the camera
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

    def take(self, most: int, objects: int | None = None) -> list[Item]:
        """Frames in the order they came: at most so many, and no more once they have so many objects.

        Where not all fit, cameras take turns, each with the one that has waited longest: cameras that are
        triggered together would else lose frames always of the same ones. What stays may give way to newer
        frames.
        """
        with self._lock:
            items = list(self._items)
            chosen: set[int] = set()
            found = 0
            for place in self._in_turns(items) if len(items) > 1 else range(len(items)):
                if len(chosen) == most or (objects is not None and found >= objects):
                    break
                chosen.add(place)
                found += len(items[place])
                self._last_turn = items[place].camera
            taken = [item for place, item in enumerate(items) if place in chosen]
            self._items = deque(item for place, item in enumerate(items) if place not in chosen)
            self._waiting.subtract(Counter(item.camera for item in taken))
        return taken

    def _in_turns(self, items: Sequence[Item]) -> Iterator[int]:
        """Places of the frames, one of each camera in every turn, beginning after the camera of the last."""
        places: dict[str, deque[int]] = {}
        for place, item in enumerate(items):
            places.setdefault(item.camera, deque()).append(place)
        cameras = sorted(places, key=lambda camera: (camera <= self._last_turn, camera))
        while any(places.values()):
            yield from (places[camera].popleft() for camera in cameras if places[camera])

    def waiting(self, camera: str) -> int:
        return self._waiting[camera]

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
            self._waiting.clear()


class Feed(NamedTuple):
    """What a topic below a camera's name carries.

    Attributes:
        parse: its bytes as a message with `header` and `nbytes`; InputError where they are damaged.
        side: whether its messages are the first or the second ones of a pair.
        counted_as: the name of their number in the tally; empty: not counted.
    """

    parse: Callable[[Raw], Any]
    side: Loss
    counted_as: str


class PairQueue(Generic[Item]):
    """Two streams of messages of each camera, paired by stamp, and the frames that wait to be worked on.

    Args:
        time_offsets: seconds by camera, added to the stamps of the second stream before pairing.
    """

    feeds: ClassVar[Mapping[str, Feed]]
    names: ClassVar[tuple[str, str]]  # of both streams, in the plural
    losses: ClassVar[Mapping[Loss, str]]  # what the tally calls messages that found no partner

    def __init__(
        self,
        cameras: Sequence[str],
        settings: StreamSettings,
        tally: Tally,
        time_offsets: Mapping[str, float] | None = None,
    ) -> None:
        offsets = time_offsets or {}
        limits = self.limits(settings)
        self.ready: BoundedQueue[Item] = BoundedQueue(settings.queue_depth, tally)
        self._tally = tally
        self._matchers: dict[str, StampMatcher[Any, Any]] = {
            camera: StampMatcher(limits, round(offsets.get(camera, 0.0) * SECOND)) for camera in cameras
        }

    def parse(self, camera: str, topic: str, data: Raw) -> Any:
        """A message of a camera; InputError where it is damaged."""
        return self.feeds[topic].parse(data)

    @abstractmethod
    def frame(self, camera: str, first: Any, second: Any, completed: int) -> Item | None:
        """The frame that two messages make, or None where it may not be used (yet)."""

    @staticmethod
    def limits(settings: StreamSettings) -> Limits:
        return Limits(
            tolerance=round(settings.sync_tolerance * SECOND),
            wait=round(settings.sync_wait * SECOND),
            memory=settings.sync_memory * MEGABYTE,
            lead=round(settings.sync_lead * SECOND),
        )

    def configure(self, settings: StreamSettings) -> None:
        """New settings from the next message on."""
        self.ready.depth = settings.queue_depth
        for matcher in self._matchers.values():
            matcher.limits = self.limits(settings)

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        """True where the message completed a frame; `now`, `received`: see `pairing`."""
        message, matcher = self.parsed(camera, topic, data), self._matchers[camera]
        if message is None:
            return False
        arrived = time.monotonic_ns() if now is None else now
        add = matcher.add_first if self.feeds[topic].side == "first" else matcher.add_second
        pair = add(message.header.stamp, message, arrived, message.nbytes, received)
        self._count_losses(camera)
        frame = None if pair is None else self.frame(camera, *pair, arrived)
        if frame is None:
            return False
        self.ready.put(frame)
        return True

    def parsed(self, camera: str, topic: str, data: Raw) -> Any | None:
        """The message, counted; None where it is damaged."""
        try:
            message = self.parse(camera, topic, data)
        except InputError:
            self._tally.drop(camera, {"bad_message": 1})
            return None
        if counted_as := self.feeds[topic].counted_as:
            self._tally.add(camera, counted_as)
        return message

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

    def clear(self) -> None:
        """Forget what waits."""
        self.ready.clear()
        for matcher in self._matchers.values():
            matcher.clear()

    def waiting(self, camera: str) -> dict[str, int]:
        """Messages of a camera that wait for their partner, and frames that wait to be worked on."""
        counts = *self._matchers[camera].waiting, self.ready.waiting(camera)
        return {f"waiting_{name}": count for name, count in zip((*self.names, "frames"), counts, strict=True)}

    def hint(self, camera: str) -> str:
        """What the last messages without a partner suggest; empty where nothing."""
        return ""

    def _count_losses(self, camera: str) -> None:
        for loss, count in self._matchers[camera].take_losses().items():
            self._tally.add(camera, self.losses[loss], count)


class TypedDetections(NamedTuple):
    """Detections and the message type that they came in."""

    type: str
    detections: FrameDetections | FrameDetections3D

    @property
    def header(self) -> Header:
        return self.detections.header

    @property
    def nbytes(self) -> int:
        return self.detections.nbytes


class ImageQueue(PairQueue[CameraFrame | CropFrame | ScoreFrame]):
    """Images and the boxes in them, whatever message type these have; or crops in the place of both.

    Crops of one stamp are one frame. It is complete when a crop with another stamp comes; after the last one
    a live node waits for as long as detections may come before their image.

    Attributes:
        objects_at: the objects in space at a time; None where nobody sends any.
    """

    feeds: ClassVar = {
        "image": Feed(parse_image, "first", "images"),
        "image/compressed": Feed(parse_compressed_image, "first", "images"),
        "detections": Feed(parse_detections, "second", "detections"),  # by its adapter, see `parse`
        "crops": Feed(parse_image, "first", "crop_messages"),
        "crops/compressed": Feed(parse_compressed_image, "first", "crop_messages"),
    }
    names: ClassVar = ("images", "detections")
    losses: ClassVar = {
        "first": "images_without_detections",  # no loss: nothing was seen in them
        "second": "dropped_detections_without_image",
        "second_late": "dropped_detections_too_late",
        "second_early": "dropped_detections_before_image",
    }

    def __init__(
        self,
        cameras: Sequence[str],
        settings: StreamSettings,
        tally: Tally,
        wiring: Mapping[str, CameraWiring],
    ) -> None:
        super().__init__(cameras, settings, tally, {name: own.time_offset for name, own in wiring.items()})
        self._adapters = {
            camera: (own.detections_type, image_adapter(own.detections_type))
            for camera, own in wiring.items()
        }
        self.objects_at: Callable[[int], FrameDetections3D | None] = lambda stamp: None
        self._settings = settings
        self._crops: dict[str, CropFrame] = {}  # frames that may get another crop

    def configure(self, settings: StreamSettings) -> None:
        super().configure(settings)
        self._settings = settings

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        if not topic.startswith("crops"):
            return super().offer(camera, topic, data, now, received)
        crop, waiting = self.parsed(camera, topic, data), self._crops.get(camera)
        if crop is None:
            return False
        arrived = time.monotonic_ns() if now is None else now
        if waiting is None or waiting.header.stamp != crop.header.stamp:
            self._crops[camera] = CropFrame(camera, (crop,), f"{INPUTS[topic]}, crops", arrived)
            if waiting is not None:
                self.ready.put(waiting)
            return waiting is not None
        if len(waiting.crops) >= self._settings.max_detections:
            self._tally.drop(camera, {"too_many_detections": 1})
        else:
            self._crops[camera] = replace(waiting, crops=(*waiting.crops, crop), completed=arrived)
        return False

    def expire(self) -> None:
        super().expire()
        latest = time.monotonic_ns() - round(self._settings.sync_lead * SECOND)
        for camera, frame in tuple(self._crops.items()):
            if frame.completed < latest:
                self.ready.put(self._crops.pop(camera))

    def finish(self) -> None:
        super().finish()
        for frame in self._crops.values():
            self.ready.put(frame)
        self._crops.clear()

    def clear(self) -> None:
        super().clear()
        self._crops.clear()

    def waiting(self, camera: str) -> dict[str, int]:
        counts = super().waiting(camera)
        frame = self._crops.get(camera)
        return counts if frame is None else {**counts, "waiting_crops": len(frame.crops)}

    def set_detections_type(self, camera: str, type_name: str) -> None:
        """The type of a camera's detections from now on; InputError where it cannot be read."""
        self._adapters[camera] = type_name, image_adapter(type_name)

    def parse(self, camera: str, topic: str, data: Raw) -> Any:
        if topic != "detections":
            return super().parse(camera, topic, data)
        type_name, adapter = self._adapters[camera]
        return TypedDetections(type_name, adapter.read(data))

    def frame(
        self,
        camera: str,
        first: ImageMessage | CompressedImageMessage,
        second: TypedDetections,
        completed: int,
    ) -> CameraFrame:
        objects = self.objects_at(first.header.stamp)
        return CameraFrame(camera, first, second.detections, second.type, completed, objects)

    def hint(self, camera: str) -> str:
        matcher = self._matchers[camera]
        return "" if matcher.misfit is None else pairing_hint(camera, matcher.misfit, matcher.limits)
