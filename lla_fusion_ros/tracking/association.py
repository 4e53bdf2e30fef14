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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from lla_fusion_ros.tracking.assignment import assigned
from lla_fusion_ros.tracking.groups import Groups, Track, grouped
from lla_fusion_ros.tracking.pair_scores import PairScores
from lla_fusion_ros.tracking.pairs import COLUMNS, ORIGIN, RAY, SIZE_OF, between
from lla_fusion_ros.tracking.trust import Trust, alone

SECOND = 1_000_000_000
TICK, LAG = SECOND // 10, SECOND // 5
BRACKET = 3 * SECOND // 10  # between two boxes of a track that are interpolated
NEAR = 3 * SECOND // 100  # ... and between two boxes where one is missing
KEPT = SECOND  # frames, which are compared after LAG
GONE = SECOND // 2  # without a box; its joins stay, and others may take its place
TOGETHER = 2 * SECOND // 5  # that both were seen, before they may be joined
MOST_TRACKS = 300


@dataclass
class _Frame:
    stamp: int
    slots: np.ndarray
    boxes: np.ndarray  # cx, cy, w, h
    sights: np.ndarray | None = None  # as soon as it is known where the camera was


@dataclass
class _Camera:
    frames: deque[_Frame] = field(default_factory=lambda: deque(maxlen=64))
    stamps: deque[int] = field(default_factory=lambda: deque(maxlen=64))


# camera, stamp, boxes (cx, cy, w, h in pixels) -> what they show; None while it is not known where it looks
See = Callable[[str, int, np.ndarray], np.ndarray | None]
# camera, stamp, points of the common frame -> which of them lie well inside its image
Shows = Callable[[str, int, np.ndarray], np.ndarray]


class Association:
    """Tracks of all cameras in, groups of tracks that are one object out.

    Args:
        see, shows: the geometry.

    Attributes:
        joins, splits: how many there were.
    """

    def __init__(self, cameras: Sequence[str], see: See, shows: Shows) -> None:
        self._names = tuple(cameras)
        self._see, self._shows = see, shows
        self._trust = Trust()
        self._index = {camera: number for number, camera in enumerate(cameras)}
        self.joins = self.splits = 0
        self.reset()

    def reset(self) -> None:
        """Forget all tracks."""
        self._cameras = [_Camera() for _ in self._index]
        self._tracks: dict[str, Track] = {}
        self._free: list[int] = []
        self._pairs = PairScores()
        self._slots = 0
        self._sights = np.zeros((0, COLUMNS))  # of each track, when it was last compared
        self._known = self._decided = 0  # stamps up to which frames were compared, and decided upon
        self._pending: list[tuple[int, int]] = []  # stamp, camera
        self._grouping: Groups = {}
        self._stale = False  # whether a track of it has ended
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
            self._pairs.tell_classes(slots, pmf[rows])
        own.frames.append(_Frame(stamp, np.array(slots, np.intp), boxes[rows]))
        own.stamps.append(stamp)
        while len(own.stamps) > 2 and own.stamps[0] < stamp - KEPT:
            own.frames.popleft()
            own.stamps.popleft()
        self._pending.append((stamp, number))

    def doubts(self, camera: str) -> dict[str, tuple[float, float]]:
        """Cameras that too little fits to be joined with: seconds of tracks that fit, and that do not."""
        return {self._names[other]: sums for other, sums in self._trust.doubts(self._index[camera]).items()}

    def finish(self) -> Groups:
        """No frame comes any more: decide with everything that was seen."""
        self._advance(2**62)
        self._decide()
        return self._grouping

    def part(self) -> None:
        """The geometry was wrong: part all objects and begin again with what the pairs show."""
        self.splits += int(np.count_nonzero(self._pairs.joined))
        self._pairs.clear()
        self._trust.clear()
        self._grouping = {}
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
            self._pairs.forget(slot)
            self._free.append(slot)
            for frame in self._cameras[track.camera].frames:
                if slot in frame.slots:
                    keep = frame.slots != slot
                    frame.slots, frame.boxes = frame.slots[keep], frame.boxes[keep]
                    frame.sights = None if frame.sights is None else frame.sights[keep]
        self._stale |= any(name in self._grouping for name in names)

    def _slot(self, name: str, camera: int, stamp: int) -> int:
        track = self._tracks.get(name)
        if track is None:
            if not self._free:
                if self._slots >= MOST_TRACKS:
                    return -1
                self._grow()
            track = Track(name, camera, self._free.pop(), stamp, stamp)
            self._tracks[name] = track
        track.last = stamp
        return track.slot

    def _grow(self) -> None:
        old, new = self._slots, min(MOST_TRACKS, max(32, 2 * self._slots))
        self._free += range(new - 1, old - 1, -1)
        self._slots = new
        self._sights = np.pad(self._sights, [(0, new - old), (0, 0)])
        self._pairs.grow(new)

    def _advance(self, until: int) -> None:
        """Compare the frames up to a time."""
        due = sorted(item for item in self._pending if item[0] <= until)
        self._pending = [item for item in self._pending if item[0] > until]
        self._known = max(self._known, due[-1][0] if due else 0)
        while due:  # a frame of each camera at a time: no pair is among them twice
            batch: dict[int, int] = {}
            for stamp, number in due:
                batch.setdefault(number, stamp)
            due = [(stamp, number) for stamp, number in due if batch[number] != stamp]
            compared = (self._compared(number, stamp) for number, stamp in batch.items())
            parts = [part for part in compared if part is not None]
            if parts:
                first, second, seen_first, seen_second, stamps = map(np.concatenate, zip(*parts, strict=True))
                self._pairs.add((first, second), (seen_first, seen_second), stamps)

    def _compared(self, number: int, stamp: int) -> tuple[np.ndarray, ...] | None:
        """A frame and what the cameras before it saw at its moment: slots and sights of pairs, stamps."""
        own = self._cameras[number]
        frame = own.frames[bisect_left(own.stamps, stamp)]
        if not number or frame.stamp != stamp or not len(frame.slots) or not self._looked(number, frame):
            return None
        assert frame.sights is not None
        others = [part for other in range(number) for part in self._at(other, stamp)]
        if not others:
            return None
        slots, sights = map(np.concatenate, zip(*others, strict=True))
        self._sights[slots], self._sights[frame.slots] = sights, frame.sights
        rows, columns = self._pairs.worth_a_look(slots, frame.slots, stamp)
        stamps = np.full(len(rows), stamp)
        return slots[rows], frame.slots[columns], sights[rows], frame.sights[columns], stamps

    def _looked(self, camera: int, frame: _Frame) -> bool:
        """Whether it is known where a frame's boxes lie; those of which it is not are left out."""
        if frame.sights is None:
            sights = self._see(self._names[camera], frame.stamp, frame.boxes)
            if sights is None:
                return False
            good = np.isfinite(sights[RAY]).all(axis=1) & np.isfinite(sights[SIZE_OF])
            frame.slots, frame.boxes, frame.sights = frame.slots[good], frame.boxes[good], sights[good]
        return True

    def _at(self, number: int, stamp: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What a camera saw at a moment, from the frames before and after: slots, sights."""
        camera = self._cameras[number]
        after = bisect_left(camera.stamps, stamp)
        near = [camera.frames[row] for row in (after - 1, after) if 0 <= row < len(camera.frames)]
        near = [
            frame for frame in near if abs(frame.stamp - stamp) <= BRACKET and self._looked(number, frame)
        ]
        same = [frame for frame in near if frame.stamp == stamp]
        known = np.zeros(self._slots, bool)
        if not same and len(near) == 2 and near[1].stamp - near[0].stamp <= BRACKET:
            before, then = near
            place = np.full(self._slots, -1)
            place[then.slots] = np.arange(len(then.slots))
            others = place[before.slots]
            rows, others = np.flatnonzero(others >= 0), others[others >= 0]
            share = (stamp - before.stamp) / (then.stamp - before.stamp)
            assert before.sights is not None and then.sights is not None
            yield before.slots[rows], between(before.sights[rows], then.sights[others], share)
            known[before.slots[rows]] = True
        for frame in same or near:
            if abs(frame.stamp - stamp) <= NEAR and not known[frame.slots].all():
                assert frame.sights is not None
                alone = ~known[frame.slots]
                yield frame.slots[alone], frame.sights[alone]
                known[frame.slots] = True

    def _decide(self) -> None:
        """Assign the tracks of every two cameras one to one; others stay as they are."""
        pairs = self._pairs
        recent: list[list[int]] = [[] for _ in self._cameras]
        for track in self._tracks.values():
            stamps = self._cameras[track.camera].stamps
            if stamps and track.last >= stamps[-1] - GONE:
                recent[track.camera].append(track.slot)
        seconds = min(self._known - self._decided, SECOND) / SECOND
        self._decided = self._known
        changed = 0
        slots = np.array([slot for own in recent for slot in own], np.intp)
        ends = np.cumsum([len(own) for own in recent]).tolist()
        all_of_them = np.ix_(slots, slots)
        joined, seen, since = (each[all_of_them] for each in (pairs.joined, pairs.seen, pairs.since))
        scores = np.where(seen > 0, pairs.score[all_of_them], -np.inf)
        old_enough = seen - since >= TOGETHER
        for pair in combinations([camera for camera, own in enumerate(recent) if own], 2):
            rows, columns = (slice(ends[camera] - len(recent[camera]), ends[camera]) for camera in pair)
            first, second = slots[rows], slots[columns]
            score, before, ripe = (each[rows, columns] for each in (scores, joined, old_enough))
            now = assigned(score, before, ripe)
            lone = alone(score, ripe)
            misfits = min(self._in_sight(pair[1], first[lone[0]]), self._in_sight(pair[0], second[lone[1]]))
            now &= self._trust.tell(pair, score[now], misfits, seconds)
            joins, splits = int((now & ~before).sum()), int((before & ~now).sum())
            if joins or splits:
                pairs.joined[np.ix_(first, second)] = now
                changed += joins + splits
                self.joins += joins
                self.splits += splits
        if changed or self._stale:
            self._grouping = grouped(pairs.joined, pairs.score, self._tracks.values())
            self._stale = False

    def _in_sight(self, camera: int, slots: np.ndarray) -> int:
        """How many tracks of another camera would be well inside the image, were they a metre large."""
        if not len(slots):
            return 0
        sights = self._sights[slots]
        points = sights[ORIGIN] + sights[RAY] / np.exp(sights[SIZE_OF])[:, None]
        return int(self._shows(self._names[camera], self._known, points).sum())
