"""Messages of a bag as frames of views, by the live nodes' own pairing and classifying."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.messages.contract import views_info_topic
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.messages.status import parse_vision_info
from lla_fusion_ros.stream.classify import ClassifyStage
from lla_fusion_ros.stream.frames import CameraFrame, ViewFrame
from lla_fusion_ros.stream.queues import FrameQueue
from lla_fusion_ros.stream.received import ViewQueue, ViewShape
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import BagError, InputError
from lla_fusion_ros.types.tally import Tally

# Frames that go through the networks together: enough to fill a batch, few enough to hold their images.
FRAMES_PER_BATCH = 8
VIEW_FRAMES_PER_BATCH = 64
# Offline nothing is in a hurry, so nothing may be dropped for want of room.
_ROOM = 1000


class Timed(NamedTuple):
    """A frame and the recorder's time at which it became complete."""

    time: int
    frame: ViewFrame


class ImageSource:
    """Images and tracked boxes, cropped and classified, some batches at a time, in the order they came.

    Args:
        start: recorder's time in nanoseconds from which messages count.
        workers: batches that are decoded and classified side by side.
    """

    def __init__(
        self,
        bag: Bag,
        cameras: Sequence[CameraTopics],
        classify: ClassifyStage,
        settings: StreamSettings,
        tally: Tally,
        time_offsets: Mapping[str, float] | None = None,
        start: int = 0,
        workers: int = 1,
    ) -> None:
        self._bag = bag
        self._workers = workers
        self._classify = classify
        self._tally = tally
        self._start = start
        self._images = {camera.image: camera for camera in cameras}
        self._detections = {camera.detections: camera.name for camera in cameras}
        names = [camera.name for camera in cameras]
        self._queue = FrameQueue(names, replace(settings, queue_depth=_ROOM), tally, time_offsets)

    def __iter__(self) -> Iterator[list[Timed]]:
        pool = ThreadPoolExecutor(self._workers, "classify", _one_torch_thread)
        pending: deque[Future[list[Timed]]] = deque()
        try:
            for frames, times in self._batches():
                pending.append(pool.submit(self._classified, frames, times))
                if len(pending) > self._workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _batches(self) -> Iterator[tuple[list[CameraFrame], list[int]]]:
        """Paired frames and the times at which they became complete."""
        times: list[int] = []
        for message in self._bag.messages({*self._images, *self._detections}, self._start):
            if self._offer(message):
                times.append(message.time)
                if len(times) >= FRAMES_PER_BATCH:
                    yield self._queue.ready.take(len(times)), times
                    times = []
        self._queue.finish()
        if times:
            yield self._queue.ready.take(len(times)), times

    def _offer(self, message: Message) -> bool:
        camera = self._images.get(message.topic)
        name = self._detections[message.topic] if camera is None else camera.name
        try:
            if camera is None:
                return self._queue.offer_detections(name, parse_detections(message.data), message.time)
            parse = parse_compressed_image if camera.compressed else parse_image
            return self._queue.offer_image(name, parse(message.data), message.time)
        except InputError:
            self._tally.drop(name, {"bad_message": 1})
            return False

    def _classified(self, frames: list[CameraFrame], times: list[int]) -> list[Timed]:
        completed = {id(frame.header): time for frame, time in zip(frames, times, strict=True)}
        return [Timed(completed[id(view.header)], view) for view in self._classify(frames)]


def _one_torch_thread() -> None:
    """Batches run side by side, so each needs one core; torch's own threads would fight over them."""
    import torch

    torch.set_num_threads(1)


class ViewSource:
    """Views that went through the networks when the bag was recorded: no image and no network is touched."""

    def __init__(
        self,
        bag: Bag,
        cameras: Sequence[ViewTopics],
        bundle: Bundle,
        settings: StreamSettings,
        tally: Tally,
        start: int = 0,
    ) -> None:
        self._bag = bag
        self._bundle = bundle
        self._tally = tally
        self._start = start
        self._views = {camera.views: camera.name for camera in cameras}
        self._embeddings = {camera.embeddings: camera.name for camera in cameras}
        self._infos = {_info_topic(camera): camera.name for camera in cameras}
        posterior = bundle.posterior()
        shape = ViewShape(posterior.networks, posterior.classes, posterior.features)
        names = [camera.name for camera in cameras]
        roomy = replace(settings, queue_depth=_ROOM)
        self._queue = ViewQueue(names, shape, bundle.hash, roomy, tally)

    def __iter__(self) -> Iterator[list[Timed]]:
        self._learn_bundles()
        times: deque[int] = deque()
        for message in self._bag.messages({*self._views, *self._embeddings}, self._start):
            if self._offer(message):
                times.append(message.time)
                if len(times) >= VIEW_FRAMES_PER_BATCH:
                    yield self._batch(times)
        self._queue.finish()
        if times:
            yield self._batch(times)

    def _learn_bundles(self) -> None:
        """Which bundle each camera's views come from; a bag that does not say is taken at its word."""
        said: dict[str, str] = {}
        for message in self._bag.messages(self._infos):
            said[self._infos[message.topic]] = parse_vision_info(message.data)[2]
            if len(said) == len(self._infos):
                break
        for camera in self._infos.values():
            self._queue.offer_bundle(camera, said.get(camera, self._bundle.hash))
        for camera, other in self._queue.foreign.items():
            raise BagError(
                f"the views of camera '{camera}' come from the bundle {other[:12]}, "
                f"not from '{self._bundle.source}' ({self._bundle.hash[:12]}); give that one with --bundle"
            )

    def _offer(self, message: Message) -> bool:
        name = self._views.get(message.topic) or self._embeddings[message.topic]
        try:
            if message.topic in self._views:
                return self._queue.offer_views(name, parse_detections(message.data), message.time)
            return self._queue.offer_embeddings(name, parse_image(message.data), message.time)
        except InputError:
            self._tally.drop(name, {"bad_message": 1})
            return False

    def _batch(self, times: deque[int]) -> list[Timed]:
        frames = self._queue.ready.take(len(times))
        batch = [Timed(time, frame) for time, frame in zip(times, frames, strict=True)]
        times.clear()
        return batch


def _info_topic(camera: ViewTopics) -> str:
    """Beside the views, wherever they lie in the bag."""
    return camera.views.removesuffix("/views") + views_info_topic("")
