"""The objects, cameras and nodes of a running graph; one thread feeds it, others look."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, log
from threading import Lock
from typing import Any

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import REST, Detections
from lla_fusion_ros.messages.status import Status

IN_VIEW = 2.0  # seconds after its last message in which an object counts as seen
KEPT = 60.0  # seconds after which it is forgotten
MOST_OBJECTS = 2000
MOST_MEMBERS = 8000  # of tracks that are one object with others
MOST_NAMES = 500  # of cameras, and of nodes: further ones are not shown
MOST_POINTS = 600  # of an object's history
_RATE_OVER = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Point:
    """One moment of an object's history; `stamp` in seconds of the messages' clock."""

    stamp: float
    camera: str
    label: str
    p: float
    entropy: float
    level: int
    reasons: str


@dataclass
class Watched:
    """What is known of one object.

    Attributes:
        number: of this watcher, never used again.
        seen: class and probability of the last frame alone, by camera.
        answer: known, unknown, cannot tell or nothing there; empty where nobody says.
        bound: upper bound of the error; None where nobody says.
        choices: the classes of its set, as text.
        changes: how often the shown class changed.
        heard: when its last message came, by the steady clock.
    """

    number: int
    id: str
    source: str
    seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    label: str = ""
    p: float = 0.0
    entropy: float = 0.0
    answer: str = ""
    bound: float | None = None
    choices: str = ""
    views: str = ""
    level: int = 0
    reasons: str = ""
    changes: int = 0
    heard: float = 0.0
    history: deque[Point] = field(default_factory=lambda: deque(maxlen=MOST_POINTS))

    @property
    def needs_a_look(self) -> bool:
        return bool(self.level or self.reasons or self.answer not in ("", "known"))

    def as_dict(self, now: float) -> dict[str, Any]:
        """Ready for JSON, without the history."""
        return {
            "n": self.number,
            "id": self.id,
            "source": self.source,
            "seen": self.seen,
            "class": self.label,
            "p": round(self.p, 4),
            "entropy": round(self.entropy, 4),
            "answer": self.answer,
            "bound": self.bound,
            "set": self.choices,
            "views": self.views,
            "level": self.level,
            "reasons": self.reasons,
            "changes": self.changes,
            "look": self.needs_a_look,
            "age": round(now - self.heard, 1),
        }


@dataclass
class WatchedCamera:
    """A camera: what its node says, and how many fused frames came here, per second."""

    name: str
    level: int = 0
    message: str = ""
    rate: float | None = None
    lost: int = 0
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=1000))

    def fused_rate(self, now: float) -> float:
        return sum(now - each < _RATE_OVER for each in self.arrivals) / _RATE_OVER


class Scene:
    """Fed with parsed messages; `source` is the namespace of the node that sent them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._objects: dict[tuple[str, str], Watched] = {}
        self._other_names: dict[tuple[str, str], str] = {}  # of tracks that are one object: the object's id
        self._labels: dict[str, Sequence[str]] = {}
        self._cameras: dict[str, WatchedCamera] = {}
        self._nodes: dict[str, Status] = {}
        self._pictures: dict[str, tuple[int, bytes]] = {}
        self._count = 0
        self.messages = 0
        self.bad_messages = 0

    def take_labels(self, source: str, class_names: Sequence[str]) -> None:
        with self._lock:
            self._labels[source] = class_names

    def take_states(self, source: str, header: Header, statuses: Sequence[Status]) -> None:
        """`track_status`: everything there is to say about the objects of a frame."""
        now = time.monotonic()
        with self._lock:
            self._arrived(camera_name(source, statuses[0].hardware_id if statuses else ""), now)
            for status in statuses:
                told = status.values
                each = self._object(source, status.name.removeprefix("track "), now)
                self._other_names.pop((source, each.id), None)  # a join that turned out wrong
                for member in told.get("members", "").split():
                    self._other_names[source, member] = each.id
                    if len(self._other_names) > MOST_MEMBERS:
                        del self._other_names[next(iter(self._other_names))]  # the oldest
                    joined = self._objects.get((source, member), each)
                    if joined is not each:  # seen under the object's id from now on
                        joined.heard = min(joined.heard, now - IN_VIEW)
                each.answer, each.choices = told.get("answer", ""), told.get("set", "")
                each.bound = _number(told.get("error at most"))
                each.views = told.get("views per camera", "")
                each.level, each.reasons = status.level, told.get("reason", "")
                fused = told.get("top class", ""), _number(told.get("p")) or 0.0
                self._fused(each, header, status.hardware_id, fused, _number(told.get("entropy")) or 0.0)
                if told.get("class changed") == "yes" and not each.changes:
                    each.changes = 1

    def take_fused(self, source: str, found: Detections) -> None:
        """`fused_classes`, where nobody publishes `track_status`."""
        now, camera = time.monotonic(), found.header.frame_id
        with self._lock:
            self._arrived(camera_name(source, camera), now)
            for name, scores in zip(found.ids, found.scores, strict=True):
                each = self._object(source, name, now)
                entropy = -sum(p * log(p) for _, p in scores if p > 0)
                self._fused(each, found.header, camera, self._top(source, scores), entropy)

    def take_views(self, source: str, camera: str, found: Detections) -> None:
        """`<camera>/views`: what the last frame alone says."""
        now = time.monotonic()
        with self._lock:
            for name, scores in zip(found.ids, found.scores, strict=True):
                name = self._other_names.get((source, name), name)
                self._object(source, name, now).seen[camera_name(source, camera)] = self._top(source, scores)

    def object_of(self, source: str, member: str, name: str) -> str:
        """The object that a track is a member of; else `name`."""
        with self._lock:
            return self._other_names.get((source, member), name)

    def take_warnings(self, source: str, statuses: Sequence[Status]) -> None:
        """`ood_warnings`: a level of OK ends a warning."""
        with self._lock:
            for status in statuses:
                each = self._objects.get((source, status.name.removeprefix("track ")))
                if each is not None:
                    each.level = status.level
                    each.reasons = status.values.get("reason", "") if status.level else ""

    def take_diagnostics(self, statuses: Sequence[Status]) -> None:
        """`/diagnostics`, on which every node of a vehicle speaks: ours tell a rate, or a fuser."""
        with self._lock:
            for status in statuses:
                node, ours, camera = status.name.partition(": camera ")
                if ours and "rate" in status.values:
                    each = self._camera(camera_name(node.rpartition("/")[0], camera))
                    if each is None:
                        continue
                    each.level, each.message = status.level, status.message
                    each.rate = _number(status.values["rate"])
                    each.lost = sum(
                        int(value)
                        for key, value in status.values.items()
                        if key.startswith("dropped_") and _is_count(value)
                    )
                elif {"fuser", "busy"} <= status.values.keys() and (
                    status.name in self._nodes or len(self._nodes) < MOST_NAMES
                ):
                    self._nodes[status.name] = status

    def take_picture(self, camera: str, image: bytes) -> None:
        """`<camera>/annotated`: an Image, not parsed before somebody looks at it."""
        with self._lock:
            self._pictures[camera] = self._pictures.get(camera, (0, b""))[0] + 1, image

    def picture(self, camera: str) -> tuple[int, bytes] | None:
        with self._lock:
            return self._pictures.get(camera)

    def objects(self) -> list[Watched]:
        """All that are not forgotten; do not change them."""
        horizon = time.monotonic() - KEPT
        with self._lock:
            if any(each.heard < horizon for each in self._objects.values()):
                self._objects = {key: each for key, each in self._objects.items() if each.heard >= horizon}
                known = {each.id for each in self._objects.values()}
                self._other_names = {k: name for k, name in self._other_names.items() if name in known}
            return list(self._objects.values())

    def history(self, number: int) -> list[Point]:
        with self._lock:
            return next((list(each.history) for each in self._objects.values() if each.number == number), [])

    def snapshot(self) -> dict[str, Any]:
        """Everything that is shown, ready for JSON."""
        now, objects = time.monotonic(), self.objects()
        with self._lock:
            return {
                "objects": [each.as_dict(now) for each in objects],
                "cameras": [
                    {
                        "name": each.name,
                        "level": each.level,
                        "message": each.message,
                        "rate": each.rate if each.rate is not None else round(each.fused_rate(now), 1),
                        "lost": each.lost,
                        "picture": self._pictures.get(each.name, (0, b""))[0],
                    }
                    for each in sorted(self._cameras.values(), key=lambda camera: camera.name)
                ],
                "nodes": [
                    {"name": each.name, "level": each.level, "message": each.message, **dict(each.values)}
                    for each in self._nodes.values()
                ],
                "messages": self.messages,
                "bad": self.bad_messages,
            }

    def _arrived(self, camera: str, now: float) -> None:
        self.messages += 1
        each = self._camera(camera) if camera else None  # without one the frame is empty
        if each is not None:
            each.arrivals.append(now)

    def _camera(self, name: str) -> WatchedCamera | None:
        if name not in self._cameras and len(self._cameras) < MOST_NAMES:
            self._cameras[name] = WatchedCamera(name)
        return self._cameras.get(name)

    def _object(self, source: str, name: str, now: float) -> Watched:
        each = self._objects.get((source, name))
        if each is None:
            if len(self._objects) >= MOST_OBJECTS:
                oldest = min(self._objects, key=lambda key: self._objects[key].heard)
                del self._objects[oldest]
            self._count += 1
            each = self._objects[source, name] = Watched(self._count, name, source)
        each.heard = now
        return each

    def _fused(
        self, each: Watched, header: Header, camera: str, fused: tuple[str, float], entropy: float
    ) -> None:
        label, p = fused
        p, entropy = (value if isfinite(value) else 0.0 for value in (p, entropy))
        each.changes += bool(each.label) and each.label != label
        each.label, each.p, each.entropy = label, p, entropy
        each.history.append(Point(header.stamp / 1e9, camera, label, p, entropy, each.level, each.reasons))

    def _top(self, source: str, scores: Sequence[tuple[str, float]]) -> tuple[str, float]:
        """The surest class by its name."""
        listed = [entry for entry in scores if entry[0] != REST]
        if not listed:
            return "", 0.0
        class_id, p = listed[0]
        names = self._labels.get(source, ())
        known = _is_count(class_id) and int(class_id) < len(names)
        return (names[int(class_id)] if known else class_id), p if isfinite(p) else 0.0


def camera_name(source: str, camera: str) -> str:
    """As it is shown: below the namespace of its node, where that has one."""
    return f"{source.strip('/')}/{camera}" if source.strip("/") and camera else camera


def _number(text: str | None) -> float | None:
    """None where it is none, or not finite."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if isfinite(value) else None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16
