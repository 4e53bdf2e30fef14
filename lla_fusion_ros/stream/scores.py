"""Detections in, views out, without images and networks: what the detector says of a box is its view."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.bundle.meta import MOST_CLASSES
from lla_fusion_ros.bundle.score_bundle import NO_FEATURES, PLACES, score_bundle
from lla_fusion_ros.detections.frame import FrameDetections, Hypotheses
from lla_fusion_ros.engine.tracks import LONGEST_ID
from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.messages.status import parse_label_info
from lla_fusion_ros.stream.frames import ScoreFrame, ViewFrame
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.joining import Joining
from lla_fusion_ros.stream.queues import ImageQueue
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.printable import printable
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import Views, box_sides
from lla_fusion_ros.warnings.result import NOTHING_THERE

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


def listed_classes(label_info: Raw) -> tuple[str, ...]:
    """The classes that a detector lists; InputError where they are none that can be fused."""
    names = parse_label_info(label_info)
    if not 0 < len(names) < MOST_CLASSES or NOTHING_THERE in names:
        raise InputError(f"a detector lists {len(names)} classes, or '{NOTHING_THERE}'")
    return names


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

    What the scores of a box leave of 1 is what the detector's errors were in the calibration, without one
    that nothing is there.

    Attributes:
        counted: classes got their numbers in the order in which messages named them.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._named = list(bundle.named_classes)
        self._reserved = bundle.reserved
        said: Sequence[str] = bundle.meta.architecture.get("said", self._named)
        self._numbers = {name: number for number, name in enumerate(said)}
        self._confusion = bundle.tensors.get("scores.confusion")
        self._open = bundle.is_open
        self._numbered = self._confusion is None and bool(self._reserved)
        self._told: tuple[str, ...] = ()
        self.counted = False

    @property
    def named(self) -> int:
        """Classes that have a name; they stand first."""
        return len(self._named)

    def names(self, classes: int | None = None) -> tuple[str, ...]:
        """Of all outcomes; of a distribution that is older than some names, of those that it has."""
        named = None if classes is None else classes - len(self._reserved)
        return (*self._named[:named], *self._reserved)

    def bundle(self, classes: int) -> Bundle:
        """An uncalibrated bundle for so many outcomes."""
        return score_bundle(self.names(classes)[: classes - len(self._reserved)], is_open=True)

    def tell(self, names: Sequence[str]) -> None:
        """A detector lists its classes, from any thread; that counts where none was named yet."""
        self._told = self._told or tuple(names)

    def _take_told(self) -> None:
        if self._told and self._open and not self._named:
            self._open = False
            self._numbers = {name: number for number, name in enumerate(self._told)}
            self._named += self._told

    def learn(self, said: str) -> int | None:
        """The number of a class as messages call it; None where it is none of those that are known."""
        number = self._numbers.get(said)
        if number is None and self._numbered and not self._open and said.isdecimal():
            return int(said) if int(said) < self.named else None  # by number in a list of names
        if number is None and self._open and self.named < PLACES and said not in self._reserved:
            self.counted = True
            number = self._numbers[said] = self.named
            self._named.append(said)
        return number

    def claims(self, hypotheses: Hypotheses, class_names: Mapping[str, str]) -> dict[int, float]:
        """The scores of known classes, by number."""
        self._take_told()
        return {
            number: min(score, 1.0)
            for said, score in hypotheses
            if score > 0 and (number := self.learn(class_names.get(said, said))) is not None
        }

    def pmf(self, claims: Mapping[int, float]) -> np.ndarray | None:
        """None where no class is known.  [classes]"""
        if not claims:
            return None
        numbers, scores = np.array(list(claims)), np.array(list(claims.values()))
        scores = scores / max(scores.sum(), 1.0)
        top = numbers[scores.argmax()]
        pmf = self._rest(top, numbers) * (1.0 - scores.sum())
        pmf[numbers] += scores
        named = pmf[: self.named]
        pmf[top] = named.max()  # a low score is a doubt that something is there, none about what it is
        return (1 - DOUBT) * pmf / pmf.sum() + DOUBT / len(pmf)

    def _rest(self, top: int, listed: np.ndarray) -> np.ndarray:
        """How what is not claimed is spread where `top` leads.  [classes]"""
        classes = self.named + len(self._reserved)
        if self._confusion is not None:
            rest = self._confusion[top].astype(np.float64)
        elif self._reserved:
            rest = np.zeros(classes)
            rest[-1] = 1.0
        else:
            rest = np.ones(classes)
        rest[listed] = 0.0
        return rest / max(rest.sum(), 1e-300)


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
        scores = found.scores or ((),) * len(found)
        claims = [self.reader.claims(own, found.class_names) for own in scores]
        pmfs = [self.reader.pmf(own) for own in claims]  # when all classes of the frame have their numbers
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
        said = np.array([pmfs[row] for row in rows]).reshape(len(rows), 1, len(self.reader.names()))
        features = np.broadcast_to(np.array(NO_FEATURES, np.float32), (len(rows), 1, len(NO_FEATURES)))
        ids, own = (tuple(each[row] for row in rows) for each in (objects, tracks))
        bbox, when = found.bbox[rows], frame.completed
        size = box_sides(bbox) if self._wiring[camera].box_frame == "image" else None
        views = Views(np.log(said).astype(np.float32), features, size=size)
        self._tally.drop(camera, dropped)
        self._tally.add(camera, "frames")
        self._tally.add(camera, "crops", len(rows))
        return ViewFrame(camera, frame.header, ids, bbox, views, own, None, when, members)
