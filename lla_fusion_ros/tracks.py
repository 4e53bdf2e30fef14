"""Which row of the state arrays belongs to which track, and which views may still change it.

The rules, all in message time:
- A track is `id` (scope "global"), or `camera` and `id` (scope "camera"). Ids are kept byte for byte.
- *Idle*: a track without a view for `idle_timeout` is forgotten; the same id later is a new track.
- *Age*: a track whose first view is more than `max_age` ago begins anew with the next view.
- *Capacity*: at most `capacity` tracks; for a new one the track not seen for longest goes. A frame with
  more ids than that keeps the first ones.
- *Order*: a frame at most `max_lateness` behind the newest is fused in whatever order it comes; one further
  behind is dropped (`late`). See `clock.py`, also for clock jumps, which clear everything.
- *Duplicates*: the same track, camera and stamp a second time is dropped (`duplicate`), also within one
  frame. A track remembers its last 32 views for this; a view older than all of them is dropped as late.
- *Identity switch*: whoever detects it calls `restart`; the track keeps its row and begins anew.
- Empty ids and ids longer than 256 characters are dropped (`empty_id`, `long_id`).
Every drop is counted with its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lla_fusion_ros.clock import MessageClock
from lla_fusion_ros.fusion.base import place_of
from lla_fusion_ros.settings import FusionSettings

SECOND = 1_000_000_000
REMEMBERED = 32  # views whose stamps a track keeps to recognise duplicates; a power of two
LONGEST_ID = 256
FIRST_ROWS = 64


class TrackKey(NamedTuple):
    """What names a track; `camera` is empty where ids are global."""

    id: str
    camera: str = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """What the store decided about one frame.

    Attributes:
        kept: positions in the frame's ids that are to be fused.      [kept] int
        rows: their rows in the state arrays.                         [kept] int
        place: the same, as a slice where the rows follow each other.
        fresh: which of them begin anew.                              [kept] bool
        removed: tracks that were forgotten, with the row each had.
        dropped: how many detections were dropped, by reason.
        jumped: the clock jumped back and everything was cleared.
    """

    kept: np.ndarray
    rows: np.ndarray
    place: np.ndarray | slice
    fresh: np.ndarray
    removed: tuple[tuple[TrackKey, int], ...]
    dropped: dict[str, int]
    jumped: bool


class TrackStore:
    """Rows of tracks. `allocated` is the number of rows that the state arrays must have."""

    def __init__(self, settings: FusionSettings) -> None:
        self.allocated = min(FIRST_ROWS, settings.capacity)
        self.cameras: list[str] = []
        self._index: dict[TrackKey, int] = {}
        self._key: list[TrackKey | None] = [None] * self.allocated
        self._free = list(range(self.allocated - 1, -1, -1))
        self._first = np.zeros(self.allocated, np.int64)
        self._newest = np.zeros(self.allocated, np.int64)
        self._used = np.zeros(self.allocated, bool)
        self._views = np.zeros((self.allocated, 0), np.int64)  # [rows, cameras]
        self._stamps = np.zeros((self.allocated, REMEMBERED), np.int64)  # 0: nothing
        self._stamp_camera = np.zeros((self.allocated, REMEMBERED), np.int16)
        self._oldest_newest = 0  # no track's newest view is older than this
        self._seen = np.zeros(self.allocated, np.int64)  # views ever, also the place in the ring of stamps
        self._clock = MessageClock(0, 1)
        self._settings = settings
        self.configure(settings)

    def __len__(self) -> int:
        return len(self._index)

    def configure(self, settings: FusionSettings) -> None:
        """New limits from the next frame on. A change of scope forgets all tracks: their names changed."""
        if settings.track_id_scope != self._settings.track_id_scope:
            self.clear()
        self._settings = settings
        self._clock.max_lateness = round(settings.max_lateness * SECOND)
        self._clock.clock_jump = round(settings.clock_jump * SECOND)
        self._idle_timeout = round(settings.idle_timeout * SECOND)

    @property
    def newest(self) -> int | None:
        """The newest stamp of all cameras."""
        return self._clock.newest

    def clear(self) -> None:
        """Forget all tracks and the time."""
        self._forget(np.flatnonzero(self._used))
        self._clock.reset()

    def admit(self, camera: str, stamp: int, ids: Sequence[str]) -> Admission:
        """Decide about every detection of one frame of one camera."""
        dropped: defaultdict[str, int] = defaultdict(int)
        removed: list[tuple[TrackKey, int]] = []
        judgement = self._clock.judge(camera, stamp)
        if judgement in ("late", "no_stamp"):
            dropped[judgement] += len(ids)
            nobody = np.zeros(0, np.intp)
            return Admission(nobody, nobody, nobody, np.zeros(0, bool), (), dict(dropped), False)
        if judgement == "jump":
            removed += self._forget(np.flatnonzero(self._used))
        removed += self._forget_idle()
        keys, kept = self._keys(camera, ids, dropped)
        keys, kept, evicted = self._make_room(keys, kept, dropped)
        removed += evicted
        rows = np.array([self._row(key) for key in keys], np.intp)
        positions = np.array(kept, np.intp)
        place = place_of(rows)
        column = self._column(camera)
        if np.count_nonzero(self._newest[place] >= stamp):  # out of order, as hardly ever
            good = self._in_time(rows, column, stamp, dropped)
            rows, positions = rows[good], positions[good]
            place = place_of(rows)
        fresh = self._note(rows, place, column, stamp)
        return Admission(positions, rows, place, fresh, tuple(removed), dict(dropped), judgement == "jump")

    def restart(self, rows: np.ndarray, camera: str) -> None:
        """The tracks of these rows begin anew with their newest view, which came from `camera`."""
        self._first[rows] = self._newest[rows]
        self._views[rows] = 0
        self._views[rows, self._column(camera)] = 1

    def keys(self, rows: np.ndarray) -> list[TrackKey]:
        """The names of the tracks of these rows."""
        return [key for key in (self._key[row] for row in rows) if key is not None]

    def views(self, place: np.ndarray | slice) -> np.ndarray:
        """Views fused so far.  [rows, cameras] in the order of `cameras`"""
        return self._views[place].copy()

    def camera_index(self, camera: str) -> int:
        """The column of a camera in `views`."""
        return self._column(camera)

    def _keys(
        self, camera: str, ids: Sequence[str], dropped: dict[str, int]
    ) -> tuple[list[TrackKey], list[int]]:
        scope = camera if self._settings.track_id_scope == "camera" else ""
        places: dict[TrackKey, int] = {}
        for position, name in enumerate(ids):
            key = TrackKey(name, scope)
            if not name:
                dropped["empty_id"] += 1
            elif len(name) > LONGEST_ID:
                dropped["long_id"] += 1
            elif key in places:
                dropped["duplicate"] += 1
            else:
                places[key] = position
        return list(places), list(places.values())

    def _make_room(
        self, keys: list[TrackKey], kept: list[int], dropped: dict[str, int]
    ) -> tuple[list[TrackKey], list[int], list[tuple[TrackKey, int]]]:
        capacity = self._settings.capacity
        if len(keys) > capacity:
            dropped["capacity"] += len(keys) - capacity
            keys, kept = keys[:capacity], kept[:capacity]
        known = [self._index[key] for key in keys if key in self._index]
        excess = len(self._index) + len(keys) - len(known) - capacity
        evicted: list[tuple[TrackKey, int]] = []
        if excess > 0:
            candidates = self._used.copy()
            candidates[known] = False
            rows = np.flatnonzero(candidates)
            evicted = self._forget(rows[np.argsort(self._newest[rows], kind="stable")[:excess]])
        while len(self._free) < len(keys) - len(known):
            self._grow()
        return keys, kept, evicted

    def _grow(self) -> None:
        extra = self.allocated  # doubling: growth costs a constant per track in the long run
        for name in ("_first", "_newest", "_used", "_views", "_stamps", "_stamp_camera", "_seen"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((extra, *array.shape[1:]), array.dtype)]))
        self._free = list(range(self.allocated + extra - 1, self.allocated - 1, -1)) + self._free
        self._key += [None] * extra
        self.allocated += extra

    def _row(self, key: TrackKey) -> int:
        row = self._index.get(key)
        if row is None:
            row = self._free.pop()
            self._index[key] = row
            self._key[row] = key
            self._used[row] = True
            self._first[row] = self._newest[row] = self._seen[row] = 0
            self._views[row] = 0
            self._stamps[row] = 0
        return row

    def _column(self, camera: str) -> int:
        if camera not in self.cameras:
            self.cameras.append(camera)
            self._views = np.concatenate([self._views, np.zeros((self.allocated, 1), np.int64)], axis=1)
        return self.cameras.index(camera)

    def _in_time(self, rows: np.ndarray, column: int, stamp: int, dropped: dict[str, int]) -> np.ndarray:
        """Which of the rows have not had this view and can still tell.  [rows] bool"""
        stamps = self._stamps[rows]
        duplicate = ((stamps == stamp) & (self._stamp_camera[rows] == column)).any(axis=1)
        forgotten = (stamps > stamp).all(axis=1)
        if duplicate.any():
            dropped["duplicate"] += int(duplicate.sum())
        if forgotten.any():
            dropped["late"] += int(forgotten.sum())
        return ~(duplicate | forgotten)

    def _note(self, rows: np.ndarray, place: np.ndarray | slice, column: int, stamp: int) -> np.ndarray:
        """Write the view down; which rows begin anew.  [rows] bool"""
        seen = self._seen[place]
        fresh = seen == 0
        if self._settings.max_age > 0:
            fresh |= self._first[place] < stamp - self._settings.max_age * SECOND
        if np.count_nonzero(fresh):
            begun = rows[fresh]
            self._first[begun] = stamp
            self._views[begun] = 0
        self._newest[place] = np.maximum(self._newest[place], stamp)
        self._oldest_newest = min(self._oldest_newest, stamp)
        ring = rows, seen & (REMEMBERED - 1)
        self._stamps[ring] = stamp
        self._stamp_camera[ring] = column
        self._seen[place] = seen + 1
        self._views[place, column] += 1
        return fresh

    def _forget_idle(self) -> list[tuple[TrackKey, int]]:
        assert self._clock.newest is not None
        oldest = self._clock.newest - self._idle_timeout
        if oldest <= self._oldest_newest:  # nobody can be idle, as in most frames
            return []
        removed = self._forget((self._used & (self._newest < oldest)).nonzero()[0])
        self._oldest_newest = int(self._newest.min(where=self._used, initial=self._clock.newest))
        return removed

    def _forget(self, rows: np.ndarray) -> list[tuple[TrackKey, int]]:
        removed = [(key, int(row)) for key, row in ((self._key[row], row) for row in rows) if key is not None]
        for key, row in removed:
            del self._index[key]
            self._key[row] = None
            self._free.append(row)
        self._used[rows] = False
        return removed
