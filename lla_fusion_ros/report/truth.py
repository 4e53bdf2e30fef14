"""The truth file beside a bag: what its boxes really show, so that a replay can be scored.

Format 2 has boxes: a box of the bag shows the object whose true box it overlaps most, one to one. Format 1
goes by the track ids in the bag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.tracking.objects import overlap
from lla_fusion_ros.types.errors import InputError

FORMAT, FORMAT_BY_ID = "lla_fusion_ros truth 2", "lla_fusion_ros truth 1"
LEAST_OVERLAP = 0.5  # intersection over union from which a box shows an object
OUTSIDE, UNSAID = -1, -2  # labels of what no class names, and of what the truth says nothing about
Box = tuple[float, float, float, float]  # cx, cy, w, h in pixels


@dataclass(frozen=True, slots=True)
class Shown:
    """An object and its class, None for what is outside the classes."""

    object: str
    class_name: str | None


@dataclass(frozen=True, slots=True)
class TruthFrame:
    """All that one camera sees at one stamp."""

    boxes: Sequence[Box]
    shown: Sequence[Shown]


@dataclass(frozen=True, slots=True)
class TruthSpan:
    """What an id stands for from a stamp (ns) on; `class_name` is None for what is outside the classes."""

    since: int
    class_name: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What the boxes of a frame are.

    Attributes:
        shown: None where the truth does not say.       [boxes]
        nothing: of a camera and stamp with a truth, those that match none of its objects.   [boxes] bool
    """

    shown: tuple[Shown | None, ...]
    nothing: np.ndarray

    def labels(self, numbers: Mapping[str, int]) -> np.ndarray:
        """Class numbers, OUTSIDE for what the bundle's `numbers` do not name, UNSAID.  [boxes]"""
        return np.array(
            [UNSAID if each is None else numbers.get(each.class_name or "", OUTSIDE) for each in self.shown],
            np.int64,
        )


@dataclass(frozen=True, slots=True)
class Truth:
    """What is in a bag, by boxes or by ids.

    Attributes:
        tracks: by ids: spans by track id, in time order; several where the id moves to another object.
        data_set: where the objects come from.
        class_names: all classes of that data set.
        frames: by boxes: what is there by camera and stamp (ns). What is not listed is not judged.
    """

    tracks: Mapping[str, Sequence[TruthSpan]]
    data_set: str = ""
    class_names: Sequence[str] = field(default_factory=tuple)
    frames: Mapping[tuple[str, int], TruthFrame] = field(default_factory=dict)

    @property
    def named(self) -> set[str]:
        """Classes of which there is an object."""
        names = {span.class_name for spans in self.tracks.values() for span in spans}
        names |= {each.class_name for frame in self.frames.values() for each in frame.shown}
        return {name for name in names if name is not None}

    def class_at(self, track_id: str, stamp: int) -> TruthSpan | None:
        """What the id stands for at that time, or None where the truth does not say."""
        found = None
        for span in self.tracks.get(track_id, ()):
            if found is None or span.since <= stamp:
                found = span
        return found

    def judge(self, frame: ViewFrame) -> Judged:
        """What its views show."""
        stamp, none = frame.header.stamp, np.zeros(len(frame), bool)
        if not self.frames:
            spans = [(track, self.class_at(track, stamp)) for track in frame.track_ids]
            shown = (None if span is None else Shown(track, span.class_name) for track, span in spans)
            return Judged(tuple(shown), none)
        true = self.frames.get((frame.camera, stamp))
        if true is None:
            return Judged((None,) * len(frame), none)
        rows = matched(frame.bbox[:, [0, 1, 3, 4]], np.array(true.boxes, float).reshape(-1, 4))
        return Judged(tuple(true.shown[row] if row >= 0 else None for row in rows), rows < 0)


class Judge:
    """Judges frame after frame and counts.

    Attributes:
        boxes, matched: those with a truth for their camera and stamp, and how many of them show an object.
        frames, judged: all, and those with a truth.
    """

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.boxes = self.matched = self.frames = self.judged = 0
        self._cameras: set[str] = set()
        self._first: int | None = None

    def __call__(self, frame: ViewFrame) -> Judged:
        judged, stamp = self.truth.judge(frame), frame.header.stamp
        matched = sum(each is not None for each in judged.shown)
        self.matched += matched
        self.boxes += matched + int(judged.nothing.sum())
        self.frames += 1
        self.judged += not self.truth.frames or (frame.camera, stamp) in self.truth.frames
        self._cameras.add(frame.camera)
        self._first = stamp if self._first is None else min(self._first, stamp)
        return judged

    @property
    def notes(self) -> tuple[str, ...]:
        """How much of the recording a truth with boxes speaks of, where that is not all of it."""
        if not self.truth.frames or (self.judged == self.frames and self.matched == self.boxes):
            return ()
        return (
            f"the truth has boxes for {self.judged} of {self.frames} frames; {self.matched} of the "
            f"{self.boxes} boxes in these show one of its objects (intersection over union of at least "
            f"{LEAST_OVERLAP:g}), only they are judged",
        )

    def why_nothing(self) -> str:
        """Why not one view is of a known class."""
        if not self.truth.frames:
            return (
                "no view in the bag belongs to a track of a known class in the truth file; it goes by ids: "
                f'where detections have none of their own, a truth with boxes ("format": "{FORMAT}") helps'
            )
        if not self.judged:
            cameras = ({camera for camera, _ in self.truth.frames}, self._cameras)
            theirs, own = (", ".join(name[:60] for name in sorted(each)[:4]) for each in cameras)
            return (
                f"the truth file has no boxes for any of the {self.frames} frames in the bag: it is about "
                f"{theirs} from stamp {min(stamp for _, stamp in self.truth.frames)} (ns) on, the bag about "
                f"{own} from {self._first} on"
            )
        if not self.matched:
            return (
                f"none of the {self.boxes} boxes at stamps of the truth file shows one of its objects "
                f"(intersection over union of at least {LEAST_OVERLAP:g}): both must be cx, cy, w, h in "
                "pixels of the image"
            )
        return "no view in the bag shows an object of a known class in the truth file"


def matched(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """The row of the true box that each box is, -1 where it is none; one to one, the largest overlap first.

    found: cx, cy, w, h; true: the same.  [found, 4], [true, 4] -> [found]
    """
    rows, worth = np.full(len(found), -1), overlap(found, true)
    pairs = np.argwhere(worth >= LEAST_OVERLAP)
    free = np.ones(len(true), bool)
    for row, column in pairs[np.argsort(-worth[tuple(pairs.T)], kind="stable")]:
        if rows[row] < 0 and free[column]:
            rows[row], free[column] = column, False
    return rows


def write_truth(truth: Truth, path: Path) -> None:
    """As format 2, or 1 where it goes by ids."""
    head = {"data_set": truth.data_set, "class_names": list(truth.class_names)}
    if truth.tracks:
        tracks = {
            name: [
                {"since": span.since, "class": span.class_name, "outside": span.class_name is None}
                for span in spans
            ]
            for name, spans in truth.tracks.items()
        }
        path.write_text(json.dumps({"format": FORMAT_BY_ID, **head, "tracks": tracks}, indent=1) + "\n")
        return
    with path.open("w") as file:  # a line a frame: an hour of them is long
        file.write(json.dumps({"format": FORMAT, **head})[:-1] + ', "frames": [')
        for number, ((camera, stamp), frame) in enumerate(truth.frames.items()):
            boxes = [
                {"box": box, "object": each.object, "class": each.class_name}
                for box, each in zip(frame.boxes, frame.shown, strict=True)
            ]
            line = json.dumps({"camera": camera, "stamp": stamp, "boxes": boxes})
            file.write(("," if number else "") + "\n" + line)
        file.write("\n]}\n")


def read_truth(path: Path) -> Truth:
    """Check and read a truth file; the sentence of an error says what is wrong with it."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"truth file '{path}' cannot be read: {error.strerror}") from error
    except RecursionError:
        raise InputError(f"truth file '{path}' is nested too deeply to be one") from None
    except ValueError as error:
        raise InputError(f"truth file '{path}' is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") not in (FORMAT, FORMAT_BY_ID):
        raise InputError(f'truth file \'{path}\' does not say "format": "{FORMAT}" or "{FORMAT_BY_ID}"')
    by_id = document["format"] == FORMAT_BY_ID
    try:
        tracks = _tracks(document) if by_id else {}
        frames = {} if by_id else _frames(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = "track" if by_id else "frame"
        raise InputError(f"truth file '{path}': {what} entries are malformed ({error!r:.200})") from error
    names = document.get("class_names", [])
    if not isinstance(names, list):
        raise InputError(f"truth file '{path}': \"class_names\" is {str(names)[:60]!r}, not a list of names")
    return Truth(tracks, str(document.get("data_set", "")), tuple(map(str, names)), frames)


def _tracks(document: dict[str, Any]) -> dict[str, tuple[TruthSpan, ...]]:
    tracks = {}
    for name, spans in document["tracks"].items():
        read = [
            TruthSpan(int(span["since"]), None if span.get("outside") else str(span["class"]))
            for span in spans
        ]
        tracks[str(name)] = tuple(sorted(read, key=lambda span: span.since))
    return tracks


def _frames(document: dict[str, Any]) -> dict[tuple[str, int], TruthFrame]:
    frames: dict[tuple[str, int], TruthFrame] = {}
    known: dict[Shown, Shown] = {}  # an object is in many frames, and in memory once
    for frame in document["frames"]:
        place = str(frame["camera"]), int(frame["stamp"])
        if place in frames:
            raise ValueError(f"camera {place[0]} has stamp {place[1]} twice")
        boxes, shown = [], []
        for each in frame["boxes"]:
            cx, cy, w, h = map(float, each["box"])
            if not np.isfinite((cx, cy, w, h)).all():
                raise ValueError(f"box {each['box']} is not finite")
            boxes.append((cx, cy, w, h))
            name = each["class"]
            one = Shown(str(each["object"]), None if name is None else str(name))
            shown.append(known.setdefault(one, one))
        frames[place] = TruthFrame(tuple(boxes), tuple(shown))
    return frames
