"""Messages in, fused frames out, in one object: what all nodes and the offline replay run.

    offer: bytes ──parse, pair──▶ frames that wait ──views: classify──▶ ViewFrame ──fuse──▶ FusedFrame

Without a classifier the views themselves come in: the queue pairs `views` with `views/embeddings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine
from lla_fusion_ros.engine.tracks import TrackKey
from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.stream.classify import FRAMES_AT_ONCE, ClassifyStage, Fallback
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.fuse import FuseStage
from lla_fusion_ros.stream.guard import Guard
from lla_fusion_ros.stream.queues import ImageQueue
from lla_fusion_ros.stream.received import ViewQueue, ViewShape
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally

if TYPE_CHECKING:  # a computer that only fuses need not wait for torch
    from lla_fusion_ros.networks.classifier import Classifier


class Perception:
    """`offer` in one thread, `step` in another or the same.

    Args:
        classifier: runs the networks on images; None where views come in that were computed elsewhere.
        fusion_settings: None where only `views` is wanted.
        time_offsets: seconds by camera, added to the stamps of its detections before pairing.
        fallback: decodes images of encodings that the package does not know.
        guard: leaves out a frame that raises; without it the exception goes to the caller.
        workers: see ClassifyStage.
    """

    def __init__(
        self,
        bundle: Bundle,
        classifier: Classifier | None,
        cameras: Sequence[str],
        stream_settings: StreamSettings | None = None,
        fusion_settings: FusionSettings | None = FusionSettings(),  # noqa: B008 - frozen
        time_offsets: Mapping[str, float] | None = None,
        fallback: Fallback | None = None,
        tally: Tally | None = None,
        guard: Guard | None = None,
        workers: int = 0,
    ) -> None:
        settings = stream_settings or StreamSettings()
        self.cameras = tuple(cameras)
        self.tally = tally or Tally()
        self.queue: ImageQueue | ViewQueue
        self.classify: ClassifyStage | None = None
        if classifier is None:
            shape = ViewShape(bundle.networks, bundle.classes, bundle.posterior().features)
            self.queue = ViewQueue(cameras, shape, bundle.hash, settings, self.tally)
        else:
            self.queue = ImageQueue(cameras, settings, self.tally, time_offsets)
            size, margin = bundle.input_size, bundle.crop_margin
            self.classify = ClassifyStage(classifier, size, margin, settings, self.tally, fallback, workers)
        self.fuse_stage: FuseStage | None = None
        if fusion_settings is not None:
            self.fuse_stage = FuseStage(FusionEngine(bundle, fusion_settings), self.tally)
        self.frames_at_once = FRAMES_AT_ONCE if self.classify is None else self.classify.frames_at_once
        self._guard = guard

    @property
    def engine(self) -> FusionEngine | None:
        return None if self.fuse_stage is None else self.fuse_stage.engine

    @property
    def foreign(self) -> Mapping[str, str]:
        """Cameras whose views are refused, and the bundle they come from."""
        return self.queue.foreign if isinstance(self.queue, ViewQueue) else {}

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        """Take the bytes of a message, whatever they are; True where frames became ready.

        Args:
            topic: its name below the camera's, one of `messages.contract.INPUTS`.
            now, received: see `pairing`.
        """
        return self.queue.offer(camera, topic, data, now, received)

    def step(self) -> list[FusedFrame]:
        """Work on frames that wait, at most `frames_at_once`, in the order they came."""
        return self.fuse(self.views())

    def views(self) -> list[ViewFrame]:
        """The first half of `step`: what the networks see in frames that wait."""
        if isinstance(self.queue, ViewQueue):
            return self.queue.ready.take(self.frames_at_once)
        assert self.classify is not None
        frames = self.queue.ready.take(self.frames_at_once)
        return self.classify(frames) if self._guard is None else self._guard.batch(self.classify, frames)

    def fuse(self, frames: Sequence[ViewFrame]) -> list[FusedFrame]:
        """The second half of `step`."""
        assert self.fuse_stage is not None
        if self._guard is None:
            return self.fuse_stage(frames)
        return self._guard.one_by_one(self.fuse_stage, frames)

    def prepare(self, settings: Sequence[Any]) -> Callable[[], list[TrackKey]]:
        """Try changed settings out; LlaFusionError refuses them.

        What it returns takes them over, between two steps, neither fails nor takes long, and tells which
        tracks with a warning were forgotten.
        """
        engine = self.engine
        changes = (
            []
            if engine is None
            else [
                (engine, engine.prepare(changed))
                for changed in settings
                if isinstance(changed, FusionSettings)
            ]
        )

        def take_over() -> list[TrackKey]:
            for changed in settings:
                if isinstance(changed, StreamSettings):
                    self.queue.configure(changed)
                    if self.classify is not None:
                        self.classify.settings = changed
            return [key for engine, change in changes for key in engine.take(change)]

        return take_over

    def reset(self) -> Sequence[TrackKey]:
        """Forget all tracks and all that waits; the tracks that were warned of."""
        self.queue.clear()
        return () if self.engine is None else self.engine.reset()
