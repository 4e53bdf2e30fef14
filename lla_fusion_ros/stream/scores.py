"""Detections in, views out, without images and networks: what the detector says of a box is its view."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.bundle.score_bundle import NO_FEATURES, is_free
from lla_fusion_ros.detections.frame import FrameDetections, Hypotheses
from lla_fusion_ros.engine.tracks import LONGEST_ID
from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.stream.frames import ScoreFrame, ViewFrame
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.joining import Joining
from lla_fusion_ros.stream.queues import ImageQueue
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.printable import printable
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import Views, box_sides

FRAMES_AT_ONCE = 64  # of one step; more wait for the next, so that what is done gets out
# Of every pmf, spread over all classes: no detector is so sure that another class is impossible.
DOUBT = 0.001
ROUNDING = 1e-6  # by which a probability in single precision may leave 0…1


def bad_score(found: FrameDetections) -> str:
    """What a topic says that is no probability, and the way out; empty where all its scores are."""
    scores = ((said, score) for own in found.scores or () for said, score in own)
    bad = next(((said, score) for said, score in scores if not -ROUNDING <= score <= 1 + ROUNDING), None)
    if bad is None:
        return ""
    said = found.class_names.get(bad[0], bad[0])
    return (
        f"says '{printable(said[:40])}: {bad[1]:g}', but scores are probabilities, 0 to 1: such messages "
        "are dropped; divide percent by 100, put logits through a sigmoid or softmax, and give every "
        "detector a topic of its own"
    )


class ScoreQueue(ImageQueue):
    """Detections alone; a frame is complete as soon as they come."""

    def __init__(
        self,
        cameras: Sequence[str],
        settings: StreamSettings,
        tally: Tally,
        wiring: Mapping[str, CameraWiring],
    ) -> None:
        super().__init__(cameras, settings, tally, wiring)
        self._bad: dict[str, str] = {}

    def take_bad_scores(self) -> dict[str, str]:
        """By camera, what `bad_score` said last since the last call."""
        bad, self._bad = self._bad, {}
        return bad

    def offer(
        self, camera: str, topic: str, data: Raw, now: int | None = None, received: int | None = None
    ) -> bool:
        message = self.parsed(camera, topic, data) if topic == "detections" else None
        if message is None:
            return False
        if not isinstance(message.detections, FrameDetections):
            self._tally.drop(camera, {"boxes_in_space": 1})
            return False
        if bad := bad_score(message.detections):
            self._tally.drop(camera, {"bad_scores": 1})
            self._bad[camera] = bad
            return False
        arrived = time.monotonic_ns() if now is None else now
        objects = self.objects_at(message.header.stamp)
        self.ready.put(ScoreFrame(camera, message.detections, message.type, arrived, objects))
        return True


class ScoreReader:
    """Hypotheses as class distributions.

    One class and its score: the rest is spread as the detector's errors were in the calibration, or evenly.

    Attributes:
        names: of the classes. An uncalibrated bundle has free places, which get the names of classes in the
            order in which they are met.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.names = list(bundle.class_names)
        said: Sequence[str] = bundle.meta.architecture.get("said", self.names)
        self._numbers = {name: number for number, name in enumerate(said) if not is_free(name)}
        even = np.ones((bundle.classes,) * 2)
        self._confusion = np.asarray(bundle.tensors.get("scores.confusion", even), np.float64)

    @property
    def named(self) -> int:
        """Classes that have a name; they stand first."""
        return len(self._numbers)

    def learn(self, said: str) -> int | None:
        """The number of a class as messages call it; None where there is no place for it."""
        number = self._numbers.get(said)
        if number is None and self.named < len(self.names) and is_free(self.names[self.named]):
            number = self._numbers[said] = len(self._numbers)
            self.names[number] = said
        return number

    def pmf(self, hypotheses: Hypotheses, class_names: Mapping[str, str]) -> np.ndarray | None:
        """None where no class is known.  [classes]"""
        listed = {
            number: min(score, 1.0)
            for said, score in hypotheses
            if score > 0 and (number := self.learn(class_names.get(said, said))) is not None
        }
        if not listed:
            return None
        numbers, scores = np.array(list(listed)), np.array(list(listed.values()))
        top = numbers[scores.argmax()]
        rest = self._confusion[top].copy()
        rest[numbers] = 0.0
        left = max(1.0 - scores.sum(), 0.0) if rest.any() else 0.0
        pmf = rest * (left / max(rest.sum(), 1e-300))
        pmf[numbers] = scores
        pmf[top] = pmf.max()  # a low score is a doubt that something is there, none about what it is
        return (1 - DOUBT) * pmf / pmf.sum() + DOUBT / len(pmf)


class ScoreStage:
    """Name and read. What cannot be used is counted and left out; nothing is raised.

    Args:
        wiring: by camera.
    """

    def __init__(
        self,
        bundle: Bundle,
        settings: StreamSettings,
        tally: Tally,
        wiring: Mapping[str, CameraWiring],
        identity: Identity,
        joining: Joining,
    ) -> None:
        self.reader = ScoreReader(bundle)
        self.settings = settings
        self.frames_at_once, self.objects_at_once = FRAMES_AT_ONCE, None
        self._tally = tally
        self._wiring = wiring
        self._identity = identity
        self._joining = joining

    def __call__(self, frames: Sequence[ScoreFrame]) -> list[ViewFrame]:
        """One ViewFrame for each frame, in the same order."""
        return [self._viewed(frame) for frame in frames]

    def _viewed(self, frame: ScoreFrame) -> ViewFrame:
        found, camera = frame.detections, frame.camera
        tracks, objects = self._identity.name(camera, frame.header.stamp, frame.detections_type, found, None)
        members: dict[str, tuple[str, ...]] = {}
        if frame.objects is not None and self._identity.by_objects(camera):  # one without a box has no score
            _, _, objects, members = self._joining.named_by_objects(frame, found.bbox, tracks, objects)
            objects = objects[: len(found)]
        pmfs = self._pmfs(found)
        finite = np.isfinite(found.bbox).all(axis=1)
        unnamed = self._identity.unnamed(camera, found.bbox)
        rows: list[int] = []
        dropped: Counter[str] = Counter()
        for row, name in enumerate(objects):
            if not name:
                reason = unnamed[row]
            elif len(name) > LONGEST_ID:
                reason = "long_id"
            elif not finite[row]:
                reason = "bad_box"
            elif pmfs[row] is None:
                reason = "unknown_class"
            elif len(rows) >= self.settings.max_detections:
                reason = "too_many_detections"
            else:
                rows.append(row)
                continue
            dropped[reason] += 1
        said = np.array([pmfs[row] for row in rows]).reshape(len(rows), 1, len(self.reader.names))
        features = np.broadcast_to(np.array(NO_FEATURES, np.float32), (len(rows), 1, len(NO_FEATURES)))
        ids, own = (tuple(each[row] for row in rows) for each in (objects, tracks))
        bbox, when = found.bbox[rows], frame.completed
        size = box_sides(bbox) if self._wiring[camera].box_frame == "image" else None
        views = Views(np.log(said).astype(np.float32), features, size=size)
        self._tally.drop(camera, dropped)
        self._tally.add(camera, "frames")
        self._tally.add(camera, "crops", len(rows))
        return ViewFrame(camera, frame.header, ids, bbox, views, own, None, when, members)

    def _pmfs(self, found: FrameDetections) -> list[np.ndarray | None]:
        scores = found.scores or ((),) * len(found)
        return [self.reader.pmf(own, found.class_names) for own in scores]
