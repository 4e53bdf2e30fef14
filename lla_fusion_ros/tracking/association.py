"""Which tracks of different cameras are one object: evidence of pairs summed up, then assigned one to one.

All in message time, and so that the order in which cameras' frames come does not matter: every TICK it is
decided anew what holds from then on, from the frames that are at least LAG older. A frame is compared with
the other cameras' boxes interpolated to its moment, so cameras need not be synchronised and objects may move.
Where geometry cannot tell, tracks stay apart: two objects fused apart cost certainty, two fused as one cost
truth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from lla_fusion_ros.tracking.pairs import MEASURES, Sights, evidence, log_ratio

SECOND = 1_000_000_000
TICK, LAG = SECOND // 10, SECOND // 5
BRACKET = 3 * SECOND // 10  # between two boxes of a track that are interpolated
NEAR = 3 * SECOND // 100  # ... and between two boxes where one is missing
GONE = SECOND // 2  # without a box; its joins stay, and others may take its place
HALF_LIFE = 2.5  # seconds; so that a wrong join is undone soon
JOIN, STAY = 5.0, -2.0  # ln of the likelihood ratio to join two tracks, and to leave them joined
TOGETHER = 2 * SECOND // 5  # that both were seen, before they may be joined
MARGIN = 3.6  # by which every other way to assign the tracks must be worse
CLASS_SHARE, CLASS_MOST = 0.5, 2.0  # what the classes may say, tempered: misread signs are not excluded
MOST_TRACKS = 300
MOST_MEMBERS = 12


@dataclass
class _Track:
    name: str
    camera: int
    slot: int
    first: int
    last: int


@dataclass
class _Frame:
    stamp: int
    slots: np.ndarray
    boxes: np.ndarray  # cx, cy, w, h
    sights: Sights | None = None  # as soon as it is known where the camera was


@dataclass
class _Camera:
    frames: deque[_Frame] = field(default_factory=lambda: deque(maxlen=64))
    stamps: deque[int] = field(default_factory=lambda: deque(maxlen=64))


Groups = Mapping[str, tuple[str, ...]]
# camera, stamp, boxes (cx, cy, w, h in pixels) -> what they show; None while it is not known where it looks
See = Callable[[str, int, np.ndarray], Sights | None]


class Association:
    """Tracks of all cameras in, groups of tracks that are one object out.

    Args:
        see: the geometry.

    Attributes:
        joins, splits: how many there were.
    """

    def __init__(self, cameras: Sequence[str], see: See) -> None:
        self._names = tuple(cameras)
        self._see = see
        self._index = {camera: number for number, camera in enumerate(cameras)}
        self.joins = self.splits = 0
        self.reset()

    def reset(self) -> None:
        """Forget all tracks."""
        self._cameras = [_Camera() for _ in self._index]
        self._tracks: dict[str, _Track] = {}
        self._free: list[int] = []
        self._sums = np.zeros((MEASURES, 0, 0))
        self._score = np.zeros((0, 0))  # ln of the likelihood ratio of every pair
        self._seen = np.zeros((0, 0), np.int64)  # stamp of the last evidence of a pair
        self._since = np.zeros((0, 0), np.int64)  # ... and of the first
        self._joined = np.zeros((0, 0), bool)
        self._pmf: np.ndarray | None = None
        self._by_slot: list[_Track | None] = []
        self._pending: list[tuple[int, int]] = []  # stamp, camera
        self._grouping: Groups = {}
        self._tick = 0
        self._history: deque[tuple[int, Groups]] = deque(maxlen=8)

    def groups(self, stamp: int) -> Groups:
        """Members of every track that is joined with others, oldest first, for a frame of that time."""
        tick = stamp // TICK
        if tick > self._tick:
            self._advance(tick * TICK - LAG)
            self._decide()
            self._tick = tick
            self._history.append((tick, self._grouping))
        for since, groups in reversed(self._history):
            if since <= tick:
                return groups
        return {}

    def observe(
        self, camera: str, stamp: int, names: Sequence[str], boxes: np.ndarray, pmf: np.ndarray | None = None
    ) -> None:
        """One frame of one camera; `pmf` is what each track's own views say.  [names, classes]"""
        good = np.flatnonzero(np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1))
        number = self._index[camera]
        own = self._cameras[number]
        if own.stamps and stamp <= own.stamps[-1]:
            return
        rows, slots = [], []
        for row in good.tolist():
            slot = self._slot(names[row], number, stamp)
            if slot >= 0:
                rows.append(row)
                slots.append(slot)
        if pmf is not None and len(slots):
            if self._pmf is None or self._pmf.shape[1] != pmf.shape[1]:
                self._pmf = np.full((len(self._by_slot), pmf.shape[1]), 1 / pmf.shape[1])
            self._pmf[slots] = pmf[rows]
        own.frames.append(_Frame(stamp, np.array(slots, np.intp), boxes[rows]))
        own.stamps.append(stamp)
        self._pending.append((stamp, number))

    def finish(self) -> Groups:
        """No frame comes any more: decide with everything that was seen."""
        self._advance(2**62)
        self._decide()
        return self._grouping

    def part(self) -> None:
        """The geometry was wrong: part all objects and begin again with what the pairs show."""
        self.splits += int(np.count_nonzero(self._joined))
        self._joined[:] = False
        self._sums[:] = self._score[:] = 0.0
        self._grouping = {}
        self._seen[:] = self._since[:] = 0
        for camera in self._cameras:
            camera.frames.clear()
            camera.stamps.clear()
        self._pending.clear()
        self._history.clear()

    def forget(self, names: Sequence[str]) -> None:
        """These tracks have ended for good."""
        for name in names:
            track = self._tracks.pop(name, None)
            if track is None:
                continue
            slot = track.slot
            self._by_slot[slot] = None
            self._sums[:, slot] = self._sums[:, :, slot] = 0.0
            self._score[slot] = self._score[:, slot] = 0.0
            self._seen[slot] = self._seen[:, slot] = 0
            self._since[slot] = self._since[:, slot] = 0
            self._joined[slot] = self._joined[:, slot] = False
            self._free.append(slot)
            for camera in self._cameras:
                for frame in camera.frames:
                    if slot in frame.slots:
                        keep = frame.slots != slot
                        frame.slots, frame.boxes = frame.slots[keep], frame.boxes[keep]
                        frame.sights = None if frame.sights is None else frame.sights.take(keep)

        if any(name in self._grouping for name in names):
            self._grouping = self._grouped()

    def _slot(self, name: str, camera: int, stamp: int) -> int:
        track = self._tracks.get(name)
        if track is None:
            if not self._free:
                if len(self._by_slot) >= MOST_TRACKS:
                    return -1
                self._grow()
            track = _Track(name, camera, self._free.pop(), stamp, stamp)
            self._tracks[name] = self._by_slot[track.slot] = track
            if self._pmf is not None:
                self._pmf[track.slot] = 1 / self._pmf.shape[1]
        track.last = stamp
        return track.slot

    def _grow(self) -> None:
        old, new = len(self._by_slot), min(MOST_TRACKS, max(32, 2 * len(self._by_slot)))
        extra = new - old
        self._free += range(new - 1, old - 1, -1)
        self._by_slot += [None] * extra
        self._sums = np.pad(self._sums, ((0, 0), (0, extra), (0, extra)))
        self._score = np.pad(self._score, ((0, extra), (0, extra)))
        self._seen = np.pad(self._seen, ((0, extra), (0, extra)))
        self._since = np.pad(self._since, ((0, extra), (0, extra)))
        self._joined = np.pad(self._joined, ((0, extra), (0, extra)))
        if self._pmf is not None:
            classes = self._pmf.shape[1]
            self._pmf = np.concatenate([self._pmf, np.full((extra, classes), 1 / classes)])

    def _advance(self, until: int) -> None:
        """Compare the frames up to a time."""
        due = sorted(item for item in self._pending if item[0] <= until)
        self._pending = [item for item in self._pending if item[0] > until]
        for stamp, number in due:
            own = self._cameras[number]
            frame = own.frames[bisect_left(own.stamps, stamp)]
            if frame.stamp != stamp or not len(frame.slots) or not self._looked(number, frame):
                continue
            parts = [self._at(other, stamp) for other in range(number)]
            found = [part for part in parts if part is not None and len(part[0])]
            if not found:
                continue
            slots = np.concatenate([part[0] for part in found])
            first = Sights.concatenate([part[1] for part in found])
            assert frame.sights is not None
            self._add(slots, frame.slots, evidence(first, frame.sights), stamp)

    def _looked(self, camera: int, frame: _Frame) -> bool:
        """Whether it is known where a frame's boxes lie; those of which it is not are left out."""
        if frame.sights is None:
            sights = self._see(self._names[camera], frame.stamp, frame.boxes)
            if sights is None:
                return False
            good = np.isfinite(sights.ray).all(axis=1) & np.isfinite(sights.size)
            frame.slots, frame.boxes, frame.sights = frame.slots[good], frame.boxes[good], sights.take(good)
        return True

    def _at(self, number: int, stamp: int) -> tuple[np.ndarray, Sights] | None:
        """What a camera saw at a moment, from the frames before and after."""
        camera = self._cameras[number]
        after = bisect_left(camera.stamps, stamp)
        near = [camera.frames[row] for row in (after - 1, after) if 0 <= row < len(camera.frames)]
        near = [
            frame for frame in near if abs(frame.stamp - stamp) <= BRACKET and self._looked(number, frame)
        ]
        same = [frame for frame in near if frame.stamp == stamp]
        parts: list[tuple[np.ndarray, Sights]] = []
        if not same and len(near) == 2 and near[1].stamp - near[0].stamp <= BRACKET:
            before, then = near
            place = np.full(len(self._by_slot), -1)
            place[then.slots] = np.arange(len(then.slots))
            others = place[before.slots]
            rows, others = np.flatnonzero(others >= 0), others[others >= 0]
            both = before.slots[rows]
            share = (stamp - before.stamp) / (then.stamp - before.stamp)
            assert before.sights is not None and then.sights is not None
            parts.append((both, before.sights.take(rows).towards(then.sights.take(others), share)))
        for frame in same or near:
            if abs(frame.stamp - stamp) <= NEAR:
                assert frame.sights is not None
                known = np.concatenate([np.empty(0, np.intp), *(slots for slots, _ in parts)])
                alone = ~np.isin(frame.slots, known)
                parts.append((frame.slots[alone], frame.sights.take(alone)))
        if not parts:
            return None
        slots, sights = zip(*parts, strict=True)
        return np.concatenate(slots), Sights.concatenate(list(sights))

    def _add(self, first: np.ndarray, second: np.ndarray, new: np.ndarray, stamp: int) -> None:
        """Sums fade with time, and grow at most as with ten frames a second."""
        place = np.ix_(first, second)
        seconds = np.minimum((stamp - self._seen[place]) / SECOND, 60.0)
        everything = np.s_[:, place[0], place[1]]
        sums = self._sums[everything] * 0.5 ** (seconds / HALF_LIFE) + new * np.minimum(1, 10 * seconds)
        self._sums[everything] = sums
        score = log_ratio(sums)
        if self._pmf is not None:
            said = np.log(np.maximum(self._pmf[first] @ self._pmf[second].T * self._pmf.shape[1], 1e-9))
            score += np.clip(CLASS_SHARE * said, -CLASS_MOST, CLASS_MOST)
        self._score[place] = score
        self._seen[place] = stamp
        since = self._since[place]
        self._since[place] = np.where(since > 0, since, stamp)

    def _decide(self) -> None:
        """Assign the tracks of every two cameras one to one; others stay as they are."""
        recent = []
        for camera in self._cameras:
            newest = camera.stamps[-1] - GONE if camera.stamps else 0
            slots = [frame.slots for frame in camera.frames if frame.stamp >= newest]
            recent.append(np.unique(np.concatenate(slots)) if slots else np.empty(0, np.intp))
        alive = np.concatenate(recent).astype(np.intp)
        if not len(alive):
            return
        place = np.ix_(alive, alive)
        score = self._score[place]
        seen = self._seen[place]
        score = np.where(seen > 0, score, -np.inf)
        ripe = seen - self._since[place] >= TOGETHER
        joined = self._joined[place]
        starts = np.concatenate([[0], np.cumsum([len(slots) for slots in recent])])
        for a in range(len(recent)):
            for b in range(a + 1, len(recent)):
                part = np.s_[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
                if score[part].size:
                    joined[part] = assigned(score[part], joined[part], ripe[part])
        before = self._joined[place]
        if (joined == before).all():
            return
        self.joins += int(np.count_nonzero(joined & ~before))
        self.splits += int(np.count_nonzero(before & ~joined))
        self._joined[place] = joined
        self._grouping = self._grouped()

    def _grouped(self) -> Groups:
        """Tracks that are one object; a group has at most one track of a camera at a time."""
        first, second = np.nonzero(self._joined)
        if not len(first):
            return {}
        strength = self._score[first, second]
        group: dict[int, list[_Track]] = {}
        for edge in np.argsort(-strength, kind="stable").tolist():
            ends = [self._by_slot[int(slot)] for slot in (first[edge], second[edge])]
            mine, other = (group.setdefault(track.slot, [track]) for track in ends if track is not None)
            if mine is other or len(mine) + len(other) > MOST_MEMBERS:
                continue
            if all(_apart(a, b) for a in mine for b in other):
                mine += other
                for track in other:
                    group[track.slot] = mine
        named: dict[str, tuple[str, ...]] = {}
        for tracks in group.values():
            if len(tracks) > 1 and tracks[0].name not in named:
                tracks.sort(key=lambda track: (track.first, track.name))
                names = tuple(track.name for track in tracks)
                named.update(dict.fromkeys(names, names))
        return named


def _apart(a: _Track, b: _Track) -> bool:
    """Whether two tracks may be one object: of two cameras, or of one camera one after the other."""
    return a.camera != b.camera or a.last < b.first or b.last < a.first


def assigned(score: np.ndarray, joined: np.ndarray, ripe: np.ndarray) -> np.ndarray:
    """Which pairs of two cameras' tracks are one object.  3 x [a, b] -> [a, b] bool

    score: ln of the likelihood ratio; joined: as it was; ripe: seen together often enough to be joined. A new
    pair must be better than any other assignment of all tracks by MARGIN.
    """
    worth = np.maximum(np.where(joined, score - STAY, score), 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    best = worth[rows, columns].sum()
    result = np.zeros_like(joined)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if joined[row, column]:
            result[row, column] = score[row, column] >= STAY
        elif ripe[row, column] and score[row, column] >= JOIN:
            result[row, column] = _sure(worth, best, row, column)
    return result


def _sure(worth: np.ndarray, best: float, row: int, column: int) -> bool:
    """Whether all other ways to assign the tracks are worse by MARGIN."""
    rivals = worth[row].sum() + worth[:, column].sum() - 2 * worth[row, column]
    if rivals <= 0:
        return True
    others = worth.copy()
    others[row, column] = 0.0
    return bool(best - others[linear_sum_assignment(others, maximize=True)].sum() >= MARGIN)
