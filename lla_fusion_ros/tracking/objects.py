"""Objects in space beside the boxes of cameras: where they are when an image is taken, and in which box.

A box becomes the object whose projection overlaps it most, one to one. Its track then stays that object's
while the objects say nothing else, so that an object missing from a message or two does not change names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.messages.cdr import Header

SECOND = 1_000_000_000
FARTHEST = 3 * SECOND // 10  # from the nearest message to an image
APART = SECOND // 10  # between the two messages by which objects are moved on
MOST_MESSAGES = 60
BEGIN, KEEP = 0.3, 0.1  # overlap (IoU) by which a box becomes an object, and by which it remains it
REMEMBERED = 2 * SECOND  # a track's object, without any overlap
FORGOTTEN = 60 * SECOND  # the tracks of an object without any overlap
MOST_MEMBERS = 12
_EMPTY = np.empty((0, 3)), np.empty((0, 4)), np.empty((0, 3))
NONE = FrameDetections3D(Header(0, ""), *_EMPTY, (), (), "global")


class Objects:
    """The last messages of boxes in space."""

    def __init__(self) -> None:
        self._messages: deque[FrameDetections3D] = deque(maxlen=MOST_MESSAGES)

    def clear(self) -> None:
        self._messages.clear()

    def take(self, found: FrameDetections3D) -> None:
        """A message; one from before the last is from another time, as of a bag that began again."""
        if self._messages and found.header.stamp <= self._messages[-1].header.stamp:
            self._messages.clear()
        self._messages.append(found)

    def at(self, stamp: int) -> FrameDetections3D:
        """The objects of the nearest message, moved to a time as they moved between two messages; none where
        no message is near."""
        before = [each for each in self._messages if each.header.stamp <= stamp]
        after = [each for each in self._messages if each.header.stamp > stamp]
        if not before and not after:
            return NONE
        first = then = before[-1] if before else after[0]
        if before and after:
            then = after[0]
        else:
            older = (each for each in reversed(before) if then.header.stamp - each.header.stamp >= APART)
            first = next(older, then)
        begin, end = first.header.stamp, then.header.stamp
        nearest = min(then, first, key=lambda each: abs(each.header.stamp - stamp))
        if abs(nearest.header.stamp - stamp) > FARTHEST:
            return NONE
        moved = replace(nearest, header=replace(nearest.header, stamp=stamp), centre=nearest.centre.copy())
        if 0 < end - begin <= 2 * FARTHEST and first.header.frame_id == then.header.frame_id:
            share = (stamp - begin) / (end - begin)
            places = [dict(zip(each.ids or (), each.centre, strict=False)) for each in (first, then)]
            for row, name in enumerate(moved.ids or ()):
                if name in places[0] and name in places[1]:
                    moved.centre[row] = (1 - share) * places[0][name] + share * places[1][name]
        return moved


@dataclass
class _Known:
    """An object: its tracks, and when one of them was last matched."""

    tracks: dict[str, None] = field(default_factory=dict)
    seen: int = 0


class Partners:
    """Which tracks are which objects, of all cameras."""

    def __init__(self) -> None:
        self._partner: dict[str, tuple[str, int]] = {}  # track -> object, stamp of the last overlap
        self._objects: dict[str, _Known] = {}

    def clear(self) -> None:
        self._partner.clear()
        self._objects.clear()

    def match(
        self, stamp: int, tracks: Sequence[str], boxes: np.ndarray, shown: FrameDetections
    ) -> tuple[list[str], list[int]]:
        """The object of every box, its track where it is none, and the rows of `shown` that no box shows.

        Args:
            tracks: their names in all cameras; "" where a box has none.
            boxes: cx, cy, w, h in pixels.                       [tracks, 4]
            shown: the objects in the image.
        """
        self._forget(stamp)
        ids = shown.ids or ("",) * len(shown)
        before = [self._partner.get(track, ("", 0))[0] for track in tracks]
        names, left = list(tracks), dict.fromkeys(row for row, name in enumerate(ids) if name)
        if ids and len(tracks):
            least = np.where(np.array(before, object)[:, None] == np.array(ids, object), KEEP, BEGIN)
            worth = overlap(boxes, shown.boxes)
            worth[(worth < least) | (np.array(ids, object) == "")] = 0.0
            for row, column in zip(*linear_sum_assignment(worth, maximize=True), strict=True):
                if worth[row, column] > 0:
                    names[row] = ids[column]
                    left.pop(column)
                    self._join(tracks[row], ids[column], stamp)
        taken = {*names, *ids}
        for row, (track, last) in enumerate(zip(tracks, before, strict=True)):
            if names[row] == track and last and last not in taken:
                names[row] = last
                taken.add(last)
        return names, list(left)

    def members(self, name: str) -> tuple[str, ...]:
        """An object and its tracks in all cameras, in the order of their first overlap."""
        known = self._objects.get(name)
        return () if known is None else (name, *known.tracks)

    def _join(self, track: str, name: str, stamp: int) -> None:
        own = self._objects.setdefault(name, _Known())
        own.seen = stamp
        if not track:
            return
        last = self._partner.get(track, ("", 0))[0]
        if last != name and last in self._objects:
            self._objects[last].tracks.pop(track, None)
        self._partner[track] = name, stamp
        own.tracks[track] = None
        if len(own.tracks) > MOST_MEMBERS:
            del own.tracks[next(iter(own.tracks))]

    def _forget(self, stamp: int) -> None:
        """What was last seen long ago, or after this time."""
        for track in [key for key, (_, seen) in self._partner.items() if abs(stamp - seen) > REMEMBERED]:
            del self._partner[track]
        for name in [key for key, own in self._objects.items() if abs(stamp - own.seen) > FORGOTTEN]:
            del self._objects[name]


def overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes cx, cy, w, h, 0 where one is none.  [n, 4], [m, 4] -> [n, m]"""
    first, second = (
        np.where(((np.abs(boxes) < 1e6).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1))[:, None], boxes, 0.0)
        for boxes in (first, second)
    )
    common = _common(first, second)
    union = first[:, 2:].prod(axis=1)[:, None] + second[:, 2:].prod(axis=1) - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def hidden(boxes: np.ndarray) -> np.ndarray:
    """Which of these boxes, the nearest first, are covered by one before them to more than half.  [n]"""
    share = _common(boxes, boxes) / np.maximum(boxes[:, 2:].prod(axis=1), 1e-9)[:, None]
    return (np.tril(share, -1) > 0.5).any(axis=1)


def _common(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Areas that boxes share.  [n, m]"""
    low = np.maximum((first[:, :2] - first[:, 2:] / 2)[:, None], second[:, :2] - second[:, 2:] / 2)
    high = np.minimum((first[:, :2] + first[:, 2:] / 2)[:, None], second[:, :2] + second[:, 2:] / 2)
    return np.asarray(np.maximum(high - low, 0).prod(axis=2))
