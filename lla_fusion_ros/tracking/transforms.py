"""The tree of frames that /tf and /tf_static tell of: where one frame is, seen from another, at any time.

Every frame has one parent. A fixed one has one transform, a moving one those of the last seconds, between
which is interpolated; nothing is known outside of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lla_fusion_ros.messages.geometry import Transform
from lla_fusion_ros.types.errors import InputError

SECOND = 1_000_000_000
KEPT = 10 * SECOND  # of the past of a moving frame
MOST_KEPT = 2000  # transforms of a moving frame
MOST_FRAMES = 2000
DEEPEST = 100  # frames above one another


@dataclass(frozen=True)
class Pose:
    """A frame seen from another: a point p of it is there `rotation @ p + place`."""

    rotation: np.ndarray  # [3, 3]
    place: np.ndarray  # [3]

    def then(self, outer: Pose) -> Pose:
        """This pose, seen from where `outer` is seen from."""
        return Pose(outer.rotation @ self.rotation, outer.rotation @ self.place + outer.place)

    def inverse(self) -> Pose:
        return Pose(self.rotation.T, -self.rotation.T @ self.place)


HERE = Pose(np.eye(3), np.zeros(3))


@dataclass
class _Frame:
    parent: str
    fixed: bool
    stamps: list[int] = field(default_factory=list)
    moves: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # quaternion, place


class Transforms:
    """Takes transforms in as they come; `lookup` raises InputError with the reason where it knows none.

    Attributes:
        version: counts changes of what is fixed.
    """

    def __init__(self) -> None:
        self.version = 0
        self._frames: dict[str, _Frame] = {}

    def add(self, transforms: Iterable[Transform], fixed: bool) -> int:
        """Take a message in; how many of its transforms are refused (not finite, a frame above itself)."""
        return sum(not self._add(each, fixed) for each in transforms)

    def _add(self, each: Transform, fixed: bool) -> bool:
        turn, place = np.array(each.turn), np.array(each.place)
        length = np.linalg.norm(turn)
        child, parent = each.child.lstrip("/"), each.header.frame_id.lstrip("/")
        if not (np.isfinite(turn).all() and np.isfinite(place).all() and 0.5 < length < 2.0):
            return False
        if not child or not parent or child in self._above(parent):
            return False
        frame = self._frames.get(child)
        if frame is None or frame.parent != parent or frame.fixed != fixed:
            if frame is None and len(self._frames) >= MOST_FRAMES:
                return False
            self._frames[child] = frame = _Frame(parent, fixed)
            self.version += 1
        turn = turn / length
        if fixed:
            old = frame.moves.get(0)
            if old is None or np.abs(old[0] - turn).max() > 1e-9 or np.abs(old[1] - place).max() > 1e-9:
                frame.moves[0] = turn, place
                self.version += 1
            return True
        stamp = each.header.stamp
        if frame.stamps and stamp < frame.stamps[-1] - KEPT:  # the clock jumped back
            frame.stamps.clear()
            frame.moves.clear()
        if stamp not in frame.moves:
            insort(frame.stamps, stamp)
        frame.moves[stamp] = turn, place
        while len(frame.stamps) > MOST_KEPT or frame.stamps[-1] - frame.stamps[0] > KEPT:
            del frame.moves[frame.stamps.pop(0)]
        return True

    def lookup(self, target: str, source: str, stamp: int) -> Pose:
        """The frame `source` seen from `target`."""
        target, source = target.lstrip("/"), source.lstrip("/")
        below, above = self._above(source), self._above(target)
        common = next((name for name in below if name in above), None)
        if common is None:
            raise InputError(f"no transform leads from '{source}' to '{target}'")
        return self._up(source, common, stamp).then(self._up(target, common, stamp).inverse())

    def connected(self, target: str, source: str) -> bool:
        """Whether transforms lead from one frame to the other, at some time."""
        above = self._above(target.lstrip("/"))
        return any(name in above for name in self._above(source.lstrip("/")))

    def fixed(self, target: str, source: str) -> bool:
        """Whether nothing between two frames moves."""
        below, above = self._above(source.lstrip("/")), self._above(target.lstrip("/"))
        between = set(below) ^ set(above)
        return all(self._frames[name].fixed for name in between if name in self._frames)

    def _above(self, name: str) -> list[str]:
        """The frame and all above it, up to the root."""
        chain = [name]
        while (frame := self._frames.get(chain[-1])) is not None and len(chain) < DEEPEST:
            chain.append(frame.parent)
        return chain

    def _up(self, name: str, ancestor: str, stamp: int) -> Pose:
        pose = HERE
        while name != ancestor:
            frame = self._frames[name]
            pose = pose.then(_at(frame, name, stamp))
            name = frame.parent
        return pose


def _at(frame: _Frame, name: str, stamp: int) -> Pose:
    if frame.fixed:
        turn, place = frame.moves[0]
        return Pose(rotation_of(turn), place)
    after = bisect_left(frame.stamps, stamp)
    if after < len(frame.stamps) and frame.stamps[after] == stamp:
        turn, place = frame.moves[stamp]
        return Pose(rotation_of(turn), place)
    if after == 0 or after == len(frame.stamps):
        raise InputError(f"where '{name}' is in '{frame.parent}' is not known for the time of the frame")
    first, then = frame.stamps[after - 1], frame.stamps[after]
    share = (stamp - first) / (then - first)
    (turn, place), (later_turn, later_place) = frame.moves[first], frame.moves[then]
    return Pose(rotation_of(slerp(turn, later_turn, share)), (1 - share) * place + share * later_place)


def slerp(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """The quaternion between two, the shorter way round."""
    cosine = float(first @ second)
    second, cosine = (second, cosine) if cosine >= 0 else (-second, -cosine)
    angle = np.arccos(min(cosine, 1.0))
    if angle < 1e-6:
        mixed = (1 - share) * first + share * second
    else:
        mixed = (np.sin((1 - share) * angle) * first + np.sin(share * angle) * second) / np.sin(angle)
    return mixed / np.linalg.norm(mixed)


def rotation_of(turn: np.ndarray) -> np.ndarray:
    """The matrix of a unit quaternion x, y, z, w.  [3, 3]"""
    x, y, z, w = turn
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
