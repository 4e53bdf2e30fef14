"""Who is who: the boxes of a frame in, the ids of the objects they show out.

Two cameras' trackers count for themselves, so an id names an object only together with its camera, as
`<camera>/<id>`, unless it is known, or the user says, that one id is one object in every camera. Boxes
without ids get them from the built-in tracker. Which of this a camera needs is decided once, by the first
message with a box in it; another message type, or ids that turn out to be none, decide it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lla_fusion_ros.detections.frame import FrameDetections
from lla_fusion_ros.detections.traps import Traps
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.tracking.tracker import Tracker, usable_boxes
from lla_fusion_ros.types.tally import Tally

UNBELIEVABLE = ("class_as_id", "jumping_ids")  # traps that say that ids are no ids


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was decided about a camera's detections.

    Attributes:
        type: their message type.
        ids: where ids come from.
        scope: whether an id is an object of this camera, or of all.
        tracker: counts the trackers whose ids this camera has had.
    """

    type: str
    ids: Literal["messages", "built-in tracker"]
    scope: Literal["camera", "global"]
    tracker: int = 1

    def __str__(self) -> str:
        means = "one object in every camera" if self.scope == "global" else "an object of this camera"
        return f"{self.type}, ids of the {self.ids}, an id is {means}"


class Identity:
    """Names the boxes of all cameras; frames of a camera must come in order, in one thread at a time.

    Attributes:
        chosen: by camera, as far as it is decided.
    """

    def __init__(self, cameras: Sequence[str], settings: StreamSettings, tally: Tally) -> None:
        self.chosen: dict[str, Chosen] = {}
        self._settings = settings
        self._tally = tally
        self._trackers = {camera: Tracker(settings.tracker) for camera in cameras}
        self._traps = {camera: Traps() for camera in cameras}
        self._had: dict[str, int] = {}  # trackers so far
        self._without_ids: set[str] = set()  # cameras under `global`

    def configure(self, settings: StreamSettings) -> None:
        """New settings from the next frame on. Another `identity` changes what objects are called."""
        if settings.identity != self._settings.identity:
            self.reset()
        self._settings = settings
        for tracker in self._trackers.values():
            tracker.settings = settings.tracker

    def reset(self) -> None:
        """Forget all tracks and what was chosen."""
        self.chosen.clear()
        self._without_ids.clear()
        for camera, tracker in self._trackers.items():
            tracker.reset()
            self._traps[camera].reset()

    def name(
        self,
        camera: str,
        stamp: int,
        type_name: str,
        found: FrameDetections,
        image_size: tuple[int, int] | None,
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Id in its camera and id of the object of every box, "" where it has none.

        Args:
            found: its boxes in pixels of the image.
            image_size: width and height, where they are known.
        """
        self._traps[camera].feed(camera, found, image_size)
        if not len(found):
            if self._tracks(camera):
                self._trackers[camera].update(stamp, found.boxes)
            return (), ()
        chosen = self._choose(camera, type_name, found)
        if chosen.ids == "messages":
            tracks = found.ids or ("",) * len(found)
        else:
            tracks = self._trackers[camera].update(stamp, found.boxes, found.confidence)
        return tracks, self._objects(camera, chosen, tracks)

    def name_crops(
        self, camera: str, type_name: str, tracks: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The same for objects that come cut out, each with its track id: there is no box to track."""
        known = self.chosen.get(camera)
        if known is None or known.type != type_name:
            scope: Literal["camera", "global"] = "global" if self._settings.identity == "global" else "camera"
            known = self._decide(camera, Chosen(type_name, "messages", scope))
        return tracks, self._objects(camera, known, tracks)

    def by_objects(self, camera: str) -> bool:
        """Whether objects in space may name the boxes of a camera, whose ids are its own."""
        known = self.chosen.get(camera)
        return self._settings.identity == "auto" and (known is None or known.scope == "camera")

    def unnamed(self, camera: str, bbox: np.ndarray) -> list[str]:
        """Why each box of a frame of this camera has no id, if it has none.

        Args:
            bbox: all boxes of the frame, in the order in which they were named.   [boxes, 5]
        """
        if not self._tracks(camera):
            return ["empty_id"] * len(bbox)
        boxes = bbox[:, [0, 1, 3, 4]]
        finite, usable = np.isfinite(boxes).all(axis=1), usable_boxes(boxes)
        beyond = np.cumsum(usable) > self._settings.tracker.capacity
        reasons = {"box_not_finite": ~finite, "box_inverted": ~usable, "too_many_detections": beyond}
        return [str(reason) for reason in np.select(list(reasons.values()), list(reasons), "not_tracked")]

    def troubles(self) -> dict[str, str]:
        """What is wrong with the detections of a camera, and the way out."""
        found = {camera: traps.findings for camera, traps in self._traps.items()}
        sentences = {camera: [each.sentence for each in findings] for camera, findings in found.items()}
        for camera in tuple(self._without_ids):
            sentences[camera].append(
                f"the detections of {camera} have no ids, and identity 'global' is about ids: with identity "
                "'auto' the built-in tracker gives them"
            )
        return {camera: "; ".join(own) for camera, own in sentences.items() if own}

    @staticmethod
    def _objects(camera: str, chosen: Chosen, tracks: tuple[str, ...]) -> tuple[str, ...]:
        if chosen.scope == "global":
            return tracks
        return tuple(object_id(camera, own, chosen.tracker) if own else "" for own in tracks)

    def _tracks(self, camera: str) -> bool:
        return camera in self.chosen and self.chosen[camera].ids == "built-in tracker"

    def _choose(self, camera: str, type_name: str, found: FrameDetections) -> Chosen:
        known = self.chosen.get(camera)
        if self._settings.identity == "global":
            if any(found.ids or ()):
                self._without_ids.discard(camera)
            elif known is None or known.type != type_name:
                self._without_ids.add(camera)
        if known is not None and known.type == type_name:
            believed = self._settings.identity != "auto" or known.ids != "messages"
            if believed or not any(each.trap in UNBELIEVABLE for each in self._traps[camera].findings):
                return known
            return self._decide(camera, Chosen(type_name, "built-in tracker", "camera"))
        if known is not None:
            self._tally.add(camera, "detection_type_changes")
            self._traps[camera].reset()
        identity = self._settings.identity
        if identity == "global":
            return self._decide(camera, Chosen(type_name, "messages", "global"))
        if found.ids is None:
            return self._decide(camera, Chosen(type_name, "built-in tracker", "camera"))
        everywhere = identity == "auto" and found.id_scope == "global"
        return self._decide(camera, Chosen(type_name, "messages", "global" if everywhere else "camera"))

    def _decide(self, camera: str, chosen: Chosen) -> Chosen:
        """Ids of another tracker mean other objects, also where they are the same numbers."""
        known = self.chosen.get(camera)
        if known is not None:
            self._had[camera] = self._had.get(camera, 1) + 1
            self._trackers[camera].reset()
        count = self._had.get(camera, 1)
        self.chosen[camera] = Chosen(chosen.type, chosen.ids, chosen.scope, count)
        return self.chosen[camera]


def object_id(camera: str, track: str, tracker: int = 1) -> str:
    """The object that a camera's own tracker calls `track`; `tracker` counts the trackers it has had."""
    return f"{camera}/{track}" if tracker == 1 else f"{camera}#{tracker}/{track}"


def track_id(camera: str, name: str) -> str:
    """The inverse of `object_id`; an id that is of no single camera stays as it is."""
    own, slash, track = name[len(camera) :].partition("/")
    of_camera = name.startswith(camera) and slash and (not own or (own[0] == "#" and own[1:].isdigit()))
    return track if of_camera else name


def is_global(camera: str, name: str) -> bool:
    """Whether an object has the same id in every camera."""
    return track_id(camera, name) == name
