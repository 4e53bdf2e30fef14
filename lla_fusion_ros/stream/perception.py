"""Messages in, fused frames out, in one object: what the `perception` node and the offline replay run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.classify import ClassifyStage, Fallback
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.fuse import FuseStage
from lla_fusion_ros.stream.guard import Guard, Tell
from lla_fusion_ros.stream.queues import FrameQueue
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally


class Perception:
    """`queue.offer_image` and `queue.offer_detections` in one thread, `step` in another or the same.

    Args:
        time_offsets: seconds by camera, added to the stamps of its detections before pairing.
        fallback: decodes images of encodings that the package does not know.
        on_error: told of a frame that raised and was left out; without it the exception goes to the caller.
    """

    def __init__(
        self,
        bundle: Bundle,
        classifier: Classifier,
        cameras: Sequence[str],
        stream_settings: StreamSettings | None = None,
        fusion_settings: FusionSettings | None = None,
        time_offsets: Mapping[str, float] | None = None,
        fallback: Fallback | None = None,
        tally: Tally | None = None,
        on_error: Tell | None = None,
    ) -> None:
        settings = stream_settings or StreamSettings()
        self.tally = tally or Tally()
        self.queue = FrameQueue(cameras, settings, self.tally, time_offsets)
        self.classify = ClassifyStage(
            classifier,
            bundle.input_size,
            bundle.crop_margin,
            settings,
            self.tally,
            fallback,
            helper=classifier.device.type == "cpu",
        )
        self.fuse = FuseStage(FusionEngine(bundle, fusion_settings), self.tally)
        self._guard = None if on_error is None else Guard(self.tally, on_error)

    def configure(self, settings: StreamSettings) -> None:
        """New settings from the next frame on."""
        self.queue.configure(settings)
        self.classify.settings = settings

    def step(self, most: int = 64) -> list[FusedFrame]:
        """Classify in one batch, and fuse in order, at most so many of the frames that wait."""
        waiting = self.queue.ready.take(most)
        if self._guard is None:
            return self.fuse(self.classify(waiting))
        return self._guard.one_by_one(self.fuse, self._guard.batch(self.classify, waiting))
