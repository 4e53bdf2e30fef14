"""Messages in, fused frames out, in one object: what all nodes and the offline replay run.

    offer: bytes ──parse, pair──▶ frames that wait ──views: classify──▶ ViewFrame ──fuse──▶ FusedFrame

Without a classifier the views themselves come in: the queue pairs `views` with `views/embeddings`. A bundle
without networks takes detections alone, and what these say is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.detections.traps import Traps
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.stream.classify import FRAMES_AT_ONCE, ClassifyStage, Fallback
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import CameraFrame, CropFrame, FusedFrame, ScoreFrame, ViewFrame
from lla_fusion_ros.stream.identity import Chosen, Identity, is_global
from lla_fusion_ros.stream.joining import Joining
from lla_fusion_ros.stream.queues import ImageQueue
from lla_fusion_ros.stream.received import ViewQueue, ViewShape
from lla_fusion_ros.stream.scores import ScoreQueue, ScoreReader, ScoreStage, listed_classes
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import about_classes
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally

if TYPE_CHECKING:  # a computer that only fuses need not wait for torch
    from lla_fusion_ros.networks.classifier import Classifier

Frame = TypeVar("Frame", CameraFrame | CropFrame | ScoreFrame, ViewFrame)
Done = TypeVar("Done")
Ready = FusedFrame | ViewFrame
Tell = Callable[[Exception], None]


class Perception:
    """`offer` in one thread, `step` in another or the same.

    Args:
        classifier: runs the networks on images; None where views come in that were computed elsewhere, or
            the bundle is for scores.
        fusion_settings: None where only `views` is wanted.
        wiring: by camera, where it is not the default.
        fallback: decodes images of encodings that the package does not know.
        guard: leaves out a frame that raises; without it the exception goes to the caller.
        workers: see ClassifyStage.

    Attributes:
        topics: by camera, what the topic of its detections is called in sentences about it.
    """

    def __init__(
        self,
        bundle: Bundle,
        classifier: Classifier | None,
        cameras: Sequence[str],
        stream_settings: StreamSettings | None = None,
        fusion_settings: FusionSettings | None = FusionSettings(),  # noqa: B008 - frozen
        wiring: Mapping[str, CameraWiring] | None = None,
        fallback: Fallback | None = None,
        tally: Tally | None = None,
        guard: Guard | None = None,
        workers: int = 0,
    ) -> None:
        settings = stream_settings or StreamSettings()
        self.cameras = tuple(cameras)
        self.topics = {camera: contract.detections_topic(camera) for camera in cameras}
        self.tally = tally or Tally()
        self.identity = Identity(cameras, settings, self.tally)
        self.joining = Joining(cameras, settings.identity == "auto", self.tally, len(bundle.reserved))
        self.queue: ImageQueue | ViewQueue
        self.classify: ClassifyStage | ScoreStage | None = None
        own = {camera: (wiring or {}).get(camera, CameraWiring()) for camera in cameras}
        if bundle.for_scores:
            self.queue = ScoreQueue(cameras, settings, self.tally, own)
            self.classify = ScoreStage(bundle, settings, self.tally, own, self.identity, self.joining)
        elif classifier is None:
            shape = ViewShape(bundle.networks, bundle.classes, bundle.posterior().features)
            self.queue = ViewQueue(cameras, shape, bundle.hash, settings, self.tally)
        else:
            self.queue = ImageQueue(cameras, settings, self.tally, own)
            self.classify = ClassifyStage(
                classifier,
                bundle.input_size,
                bundle.crop_margin,
                settings,
                self.tally,
                own,
                self.identity,
                self.joining,
                fallback,
                workers,
            )
        self.fuse_stage: FuseStage | None = None
        if fusion_settings is not None:
            several = self.joining if len(self.cameras) > 1 else None
            engine = FusionEngine(bundle, fusion_settings)
            self.fuse_stage = FuseStage(engine, self.tally, several, self.scores)
        self.frames_at_once = FRAMES_AT_ONCE if self.classify is None else self.classify.frames_at_once
        self._guard = guard
        self._settings = settings
        self._traps = Traps()

    @property
    def engine(self) -> FusionEngine | None:
        return None if self.fuse_stage is None else self.fuse_stage.engine

    @property
    def scores(self) -> ScoreReader | None:
        """What reads the scores of detections, where there are no networks."""
        return self.classify.reader if isinstance(self.classify, ScoreStage) else None

    @property
    def foreign(self) -> Mapping[str, str]:
        """Cameras whose views are refused, and the bundle they come from."""
        return self.queue.foreign if isinstance(self.queue, ViewQueue) else {}

    @property
    def chosen(self) -> Mapping[str, Chosen]:
        """By camera: message type of its detections, where its ids come from and what they mean; empty until
        its first frame with a box, and where views come in."""
        return self.identity.chosen

    def troubles(self) -> dict[str, str]:
        """By camera, what would be fused wrongly without anybody noticing, and the way out; of scores that
        are none, what came since the last call."""
        found = list(self.identity.troubles().items())
        shared = [finding.sentence for finding in self._traps.findings]  # of ids that several cameras share
        found += [(camera, sentence) for sentence in shared for camera in self.cameras]
        if isinstance(self.queue, ScoreQueue):
            bad = self.queue.take_bad_scores()
            found += [(camera, f"{self.topics[camera]} {sentence}") for camera, sentence in bad.items()]
        troubles: dict[str, list[str]] = {}
        for camera, sentence in found:
            troubles.setdefault(camera, []).append(sentence)
        return {camera: "; ".join(own) for camera, own in troubles.items()}

    def set_detections_type(self, camera: str, type_name: str) -> None:
        """The message type of a camera's detections from now on; InputError where it cannot be read."""
        assert isinstance(self.queue, ImageQueue)
        self.queue.set_detections_type(camera, type_name)

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        """Take the bytes of a message, whatever they are; True where frames became ready.

        Args:
            topic: its name below the camera's, one of `messages.contract.INPUTS`.
            now, received: see `pairing`.
        """
        if topic == "camera_info":
            self.joining.offer_info(camera, data)
            return False
        if topic == "detections/label_info":
            if self.scores is not None:
                with suppress(InputError):
                    self.scores.tell(listed_classes(data))
            return False
        return self.queue.offer(camera, topic, data, now, received)

    def offer_transforms(self, topic: str, data: Raw) -> None:
        """Take the bytes of a message of /tf or /tf_static."""
        self.joining.offer_transforms(topic, data)

    def offer_objects(self, data: Raw) -> None:
        """Take the bytes of a message of objects in space."""
        if isinstance(self.queue, ImageQueue):
            self.joining.offer_objects(data)
            self.queue.objects_at = self.joining.objects.at

    def step(self) -> list[FusedFrame]:
        """Work on frames that wait, at most `frames_at_once`, in the order they came."""
        return self.fuse(self.views())

    def views(self) -> list[ViewFrame]:
        """The first half of `step`: what the networks see in frames that wait."""
        if isinstance(self.queue, ViewQueue):
            return self.queue.ready.take(self.frames_at_once)
        assert self.classify is not None
        frames = self.queue.ready.take(self.frames_at_once, self.classify.objects_at_once)
        stage: Callable[[Sequence[Any]], list[ViewFrame]] = (
            self.classify
        )  # its queue gives frames of its kind
        return stage(frames) if self._guard is None else self._guard.batch(stage, frames)

    def fuse(self, frames: Sequence[ViewFrame]) -> list[FusedFrame]:
        """The second half of `step`."""
        assert self.fuse_stage is not None
        if self._guard is None:
            done = self.fuse_stage(frames)
        else:
            done = self._guard.one_by_one(self.fuse_stage, frames)
        if len(self.cameras) > 1:
            for fused in done:
                self._compare_cameras(fused.frame)
        return done

    def _compare_cameras(self, frame: ViewFrame) -> None:
        """Watch ids that cameras share for objects that they do not."""
        shared = np.flatnonzero([is_global(frame.camera, name) for name in frame.ids])
        if len(shared):
            ids = tuple(frame.ids[row] for row in shared)
            said = about_classes(view_pmf(frame)[shared], self.joining.reserved)
            self._traps.feed_classes(frame.camera, frame.header.stamp, ids, said)

    def prepare(self, settings: Sequence[Any]) -> Callable[[], list[str]]:
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

        def take_over() -> list[str]:
            ended: list[str] = []
            for changed in settings:
                if isinstance(changed, StreamSettings):
                    self.queue.configure(changed)
                    self.identity.configure(changed)
                    if self.classify is not None:
                        self.classify.settings = changed
                    if changed.identity != self._settings.identity and engine is not None:
                        ended += engine.reset()  # objects get other names
                        self.joining.reset()
                        self.joining.on = changed.identity == "auto"
                    self._settings = changed
            return ended + [key for engine, change in changes for key in engine.take(change)]

        return take_over

    def reset(self) -> Sequence[str]:
        """Forget all tracks and all that waits; the tracks that were warned of."""
        self.queue.clear()
        self.identity.reset()
        self._traps.reset()
        self.joining.reset()
        return () if self.engine is None else self.engine.reset()


class FuseStage:
    """The engine in the order of arrival. A frame that does not fit is counted and changes nothing.

    scores: names classes as they come.
    """

    def __init__(
        self,
        engine: FusionEngine,
        tally: Tally,
        joining: Joining | None = None,
        scores: ScoreReader | None = None,
    ) -> None:
        self.engine = engine
        self._scores = scores
        self._tally = tally
        self._joining = joining

    def __call__(self, frames: Sequence[ViewFrame]) -> list[FusedFrame]:
        """One FusedFrame for each frame that was fused or ended a warning; a late frame, of which nothing
        was used, has none."""
        return [fused for fused in map(self._fuse, frames) if fused is not None]

    def _fuse(self, frame: ViewFrame) -> FusedFrame | None:
        groups = {**frame.members, **({} if self._joining is None else self._joining.groups(frame))}
        if self._scores is not None and frame.views.classes > self.engine.classes:
            self.engine.widen(self._scores.bundle(frame.views.classes))
        observation = Observation(frame.camera, frame.header.stamp, frame.ids, frame.views, groups)
        try:
            result = self.engine.update(observation)
        except InputError:
            self._tally.drop(frame.camera, {"bad_views": 1})
            self._tally.add(frame.camera, "unused_frames")
            return None
        if self._joining is not None:
            self._joining.observe(frame, result)
        if result.dropped:
            self._tally.drop(frame.camera, result.dropped)
        if result.jumped:
            self._tally.add(frame.camera, "clock_jumps")
        if result.changed:
            self._tally.add(frame.camera, "class_changes", len(result.changed))
        if result.switched:
            self._tally.add(frame.camera, "identity_switches", len(result.switched))
        if result.dropped and not len(result.kept) and not result.cleared:
            self._tally.add(frame.camera, "unused_frames")  # what it held is counted by reason
            return None
        self._tally.add(frame.camera, "fused_frames")
        self._tally.add(frame.camera, "fused_views", len(result.kept))
        return FusedFrame(frame, result)


class Guard:
    """Runs a stage, and where it raises leaves out only the frame at fault: counted, and told of. It must not
    cost the other frames of its batch, least of all other cameras'.

    Args:
        tell: gets the exception; a stage lets none through that outside data should cause.
    """

    def __init__(self, tally: Tally, tell: Tell) -> None:
        self._tally = tally
        self._tell = tell

    def batch(self, stage: Callable[[Sequence[Frame]], list[Done]], frames: Sequence[Frame]) -> list[Done]:
        """All frames at once, which is fast; one by one where that fails. The stage must have no memory."""
        try:
            return stage(frames)
        except Exception:
            return self.one_by_one(stage, frames)

    def one_by_one(
        self, stage: Callable[[Sequence[Frame]], list[Done]], frames: Sequence[Frame]
    ) -> list[Done]:
        done: list[Done] = []
        for frame in frames:
            try:
                done += stage([frame])
            except Exception as error:
                self._tally.drop(frame.camera, {"internal_error": 1})
                self._tally.add(frame.camera, "unused_frames")
                self._tell(error)
        return done

    def publish(self, send: Callable[[Ready], None], frames: Sequence[Ready]) -> None:
        """Send frames, one after the other; one that cannot be sent costs itself only."""
        for frame in frames:
            try:
                send(frame)
            except Exception as error:
                self._tally.drop(frame.camera, {"not_published": 1})
                self._tell(error)
