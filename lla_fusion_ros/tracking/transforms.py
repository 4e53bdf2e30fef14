"""The tree of frames that /tf and /tf_static tell of: where one frame is, seen from another, at any time.

Every frame has one parent. A fixed one has one transform, a moving one those of the last seconds, between
which is interpolated; nothing is known outside of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lla_fusion_ros.types.errors import InputError

SECOND = 1_000_000_000
KEPT = 10 * SECOND  # of the past of a moving frame
MOST_KEPT = 2000  # transforms of a moving frame
MOST_FRAMES = 2000
DEEPEST = 100  # frames above one another
# A fixed frame that moves by more than this, and a moving one that leaps by more, has jumped.
SHIFT, TURN = 0.02, np.deg2rad(0.2)
LEAP, SPIN = 2.0, np.deg2rad(10)  # between two transforms, and ...
LEAP_SPEED, SPIN_SPEED = 100.0, np.deg2rad(720)  # per second


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


@dataclass(frozen=True)
class Transform:
    """One entry of a TFMessage; `turn` is the quaternion x, y, z, w."""

    stamp: int
    parent: str
    child: str
    place: tuple[float, float, float]
    turn: tuple[float, float, float, float]


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
        jumps: how often a frame jumped.
        jumped: the last such frame and its stamp.
    """

    def __init__(self) -> None:
        self.version = 0
        self.jumps = 0
        self.jumped: tuple[str, int] | None = None
        self._frames: dict[str, _Frame] = {}

    def clear_moving(self) -> None:
        """Forget what moves, as when the clock jumps; what is fixed stays."""
        for frame in self._frames.values():
            if not frame.fixed:
                frame.stamps.clear()
                frame.moves.clear()

    def add(self, transforms: Iterable[Transform], fixed: bool) -> int:
        """Take a message in; how many of its transforms are refused (not finite, a frame above itself)."""
        return sum(not self._add(each, fixed) for each in transforms)

    def _add(self, each: Transform, fixed: bool) -> bool:
        turn, place = np.array(each.turn), np.array(each.place)
        length = np.linalg.norm(turn)
        child, parent = each.child.lstrip("/"), each.parent.lstrip("/")
        if not (np.isfinite(turn).all() and np.isfinite(place).all() and 0.5 < length < 2.0):
            return False
        if not child or not parent or child in self._above(parent):
            return False
        known = self._frames.get(child)
        if known is None or known.parent != parent or known.fixed != fixed:
            if known is None and len(self._frames) >= MOST_FRAMES:
                return False
            if known is not None:
                self._note_jump(child, each.stamp)
            self._frames[child] = known = _Frame(parent, fixed)
            self.version += 1
        self._put(known, child, 0 if fixed else each.stamp, turn / length, place, each.stamp)
        return True

    def _put(
        self, frame: _Frame, name: str, stamp: int, turn: np.ndarray, place: np.ndarray, seen: int
    ) -> None:
        if frame.fixed:
            old = frame.moves.get(0)
            if old is not None:
                if _turned(old[0], turn) < 1e-9 and np.abs(old[1] - place).max() < 1e-9:
                    return
                if _turned(old[0], turn) > TURN or np.linalg.norm(old[1] - place) > SHIFT:
                    self._note_jump(name, seen)
                self.version += 1
        elif stamp in frame.moves:
            return
        elif frame.stamps:
            near = frame.stamps[min(bisect_left(frame.stamps, stamp), len(frame.stamps) - 1)]
            old, seconds = frame.moves[near], max(abs(stamp - near) / SECOND, 1e-3)
            leapt, spun = np.linalg.norm(old[1] - place), _turned(old[0], turn)
            far = leapt > LEAP and leapt / seconds > LEAP_SPEED
            if far or (spun > SPIN and spun / seconds > SPIN_SPEED):
                self._note_jump(name, seen)
                frame.stamps.clear()
                frame.moves.clear()
        frame.moves[stamp] = turn, place
        if frame.fixed:
            return
        insort(frame.stamps, stamp)
        while len(frame.stamps) > MOST_KEPT or frame.stamps[-1] - frame.stamps[0] > KEPT:
            del frame.moves[frame.stamps.pop(0)]

    def _note_jump(self, name: str, stamp: int) -> None:
        self.jumps += 1
        self.jumped = name, stamp

    def __contains__(self, frame: str) -> bool:
        frame = frame.lstrip("/")
        return frame in self._frames or any(each.parent == frame for each in self._frames.values())

    def lookup(self, target: str, source: str, stamp: int) -> Pose:
        """The frame `source` seen from `target`."""
        target, source = target.lstrip("/"), source.lstrip("/")
        below, above = self._above(source), self._above(target)
        common = next((name for name in below if name in above), None)
        if common is None:
            raise InputError(f"no transform leads from '{source}' to '{target}'")
        return self._up(source, common, stamp).then(self._up(target, common, stamp).inverse())

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


def _turned(first: np.ndarray, second: np.ndarray) -> float:
    """The angle between two quaternions."""
    return float(2 * np.arccos(min(1.0, abs(float(first @ second)))))
