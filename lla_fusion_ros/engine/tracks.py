"""Which row of the state arrays belongs to which track, and which views may still change it.

The rules, all in message time:
- A track is named by the id of its object, which is kept byte for byte.
- *Idle*: a track without a view for `idle_timeout` is forgotten; the same id later is a new track. While
  tracks of several cameras are one object, a view of one of them keeps all.
- *Age*: a track whose first view is more than `max_age` ago begins again with the next view.
- *Capacity*: at most `capacity` tracks; for a new one the track not seen for longest goes. A frame with
  more ids than that keeps the first ones.
- *Order*: a frame at most `max_lateness` behind the newest is fused in whatever order it comes; one further
  behind is dropped (`late`). See `clock.py`, also for clock jumps, which clear everything.
- *Duplicates*: the same track, camera and stamp a second time is dropped (`duplicate`), also within one
  frame, and however late it comes: which of two frames is faster must not change what is counted. The last
  `REMEMBERED` frames of each camera are known for this; a frame older than all of them is late.
- *Identity switch*: whoever detects it calls `restart`; the track keeps its row and begins again.
- Empty ids and ids longer than 256 characters are dropped (`empty_id`, `long_id`).
Every drop is counted with its reason.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.engine.clock import MessageClock
from lla_fusion_ros.types.settings import FusionSettings

SECOND = 1_000_000_000
REMEMBERED = 256  # frames of a camera of which it is known whose views were fused
LONGEST_ID = 256
FIRST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Admission:
    """What the store decided about one frame.

    Attributes:
        kept: positions in the frame's ids that are to be fused.      [kept] int
        rows: their rows in the state arrays.                         [kept] int
        fresh: which of them begin, or begin again.                   [kept] bool
        removed: tracks that were forgotten, with the row each had.
        dropped: how many detections were dropped, by reason.
        jumped: the clock jumped back and everything was cleared.
    """

    kept: np.ndarray
    rows: np.ndarray
    fresh: np.ndarray
    removed: tuple[tuple[str, int], ...]
    dropped: dict[str, int]
    jumped: bool


class _Track:
    """What the store knows of one track: plain numbers, as a frame mostly has few tracks.

    Attributes:
        first: the stamp that its age counts from; 0 before the first view.
        newest: its newest stamp.
        used: the newest stamp of the object that it belongs to.
        views: how many views of each camera were fused.
    """

    __slots__ = ("first", "id", "newest", "row", "used", "views")

    def __init__(self, track_id: str, row: int) -> None:
        self.id = track_id
        self.row = row
        self.first = self.newest = self.used = 0
        self.views: list[int] = []


class TrackStore:
    """Rows of tracks. `allocated` is the number of rows that the state arrays must have."""

    def __init__(self, settings: FusionSettings) -> None:
        self.allocated = min(FIRST_ROWS, settings.capacity)
        self.cameras: list[str] = []
        self._index: dict[str, _Track] = {}
        self._tracks: list[_Track | None] = [None] * self.allocated  # by row
        self._free = list(range(self.allocated - 1, -1, -1))
        self._oldest_newest = 0  # no track's newest view is older than this
        # Whose views were fused, by camera and stamp: hashes, since ids may be long.
        self._fused: defaultdict[str, dict[int, tuple[int, ...]]] = defaultdict(dict)
        self._clock = MessageClock(0, 1)
        self._settings = settings
        self.configure(settings)

    def __len__(self) -> int:
        return len(self._index)

    def configure(self, settings: FusionSettings) -> None:
        """New limits from the next frame on."""
        self._settings = settings
        self._clock.max_lateness = round(settings.max_lateness * SECOND)
        self._clock.clock_jump = round(settings.clock_jump * SECOND)
        self._idle_timeout = round(settings.idle_timeout * SECOND)
        self._max_age = round(settings.max_age * SECOND)

    @property
    def newest(self) -> int | None:
        """The newest stamp of all cameras."""
        return self._clock.newest

    def clear(self) -> list[tuple[str, int]]:
        """Forget all tracks and the time; the tracks, with the row each had."""
        self._clock.reset()
        self._fused.clear()
        return self._forget(self._living())

    def admit(self, camera: str, stamp: int, ids: Sequence[str]) -> Admission:
        """Decide about every detection of one frame of one camera."""
        dropped: defaultdict[str, int] = defaultdict(int)
        removed: list[tuple[str, int]] = []
        judgement = self._clock.judge(camera, stamp)
        if judgement == "no_stamp":
            return self._refused({"no_stamp": len(ids)})
        if judgement == "jump":
            self._fused.clear()
            removed += self._forget(self._living())
        named = self._named(ids, dropped)
        self._drop_copies(camera, stamp, named, dropped)
        if judgement == "late" or self._is_forgotten(camera, stamp):
            if named or not dropped:  # an empty frame has no answer either
                dropped["late"] += len(named)
            return self._refused(dropped)
        removed += self._forget_idle()
        removed += self._begin_new(named)
        kept, rows, fresh = self._note(named, camera, stamp)
        return Admission(kept, rows, fresh, tuple(removed), dict(dropped), judgement == "jump")

    @staticmethod
    def _refused(dropped: dict[str, int]) -> Admission:
        """Nothing of a frame is fused."""
        nobody = np.zeros(0, np.intp)
        return Admission(nobody, nobody, np.zeros(0, bool), (), dict(dropped), False)

    def member_rows(self, members: Sequence[str], stamp: int) -> list[int]:
        """The rows of tracks that are one object, seen at this time, as far as they are known."""
        known = [track for track in map(self._index.get, members) if track is not None]
        for track in known:
            track.used = max(track.used, stamp)
        return [track.row for track in known]

    def restart(self, rows: np.ndarray, camera: str) -> None:
        """The tracks of these rows begin again with their newest view, which came from `camera`."""
        column = self._column(camera)
        for track in self._of(rows):
            track.first = track.newest
            track.views = [0] * len(self.cameras)
            track.views[column] = 1

    def ids(self, rows: np.ndarray) -> list[str]:
        """The names of the tracks of these rows."""
        return [track.id for track in self._of(rows)]

    def views(self, rows: np.ndarray) -> np.ndarray:
        """Views fused so far.  [rows, cameras] in the order of `cameras`"""
        seen = [track.views for track in self._of(rows)]
        return np.array(seen, np.int64).reshape(len(seen), len(self.cameras))  # also where there are none

    def camera_index(self, camera: str) -> int:
        """The column of a camera in `views`."""
        return self._column(camera)

    def _of(self, rows: np.ndarray) -> list[_Track]:
        return [track for track in map(self._tracks.__getitem__, rows.tolist()) if track is not None]

    def _living(self) -> list[_Track]:
        """All tracks, in the order of their rows."""
        return [track for track in self._tracks if track is not None]

    def _named(self, ids: Sequence[str], dropped: dict[str, int]) -> dict[str, int]:
        """The tracks that the frame names, and where it names each; no more than there may be."""
        named: dict[str, int] = {}
        for position, name in enumerate(ids):
            if not name:
                dropped["empty_id"] += 1
            elif len(name) > LONGEST_ID:
                dropped["long_id"] += 1
            elif name in named:
                dropped["duplicate"] += 1
            else:
                named[name] = position
        excess = len(named) - self._settings.capacity
        if excess > 0:
            dropped["capacity"] += excess
            for name in list(named)[-excess:]:
                del named[name]
        return named

    def _drop_copies(self, camera: str, stamp: int, named: dict[str, int], dropped: dict[str, int]) -> None:
        """Take out whose view of this camera and stamp was fused before."""
        fused = self._fused[camera].get(stamp, ())
        for name in [name for name in named if hash(name) in fused] if fused else ():
            dropped["duplicate"] += 1
            del named[name]

    def _is_forgotten(self, camera: str, stamp: int) -> bool:
        """Whether a frame is so old that it is not known any more whose views were fused."""
        fused = self._fused[camera]
        return len(fused) == REMEMBERED and stamp not in fused and stamp < min(fused)

    def _begin_new(self, named: dict[str, int]) -> list[tuple[str, int]]:
        """Give those that are new a row; the tracks that had to go for them."""
        new = [name for name in named if name not in self._index]
        if not new:
            return []
        removed: list[tuple[str, int]] = []
        excess = len(self._index) + len(new) - self._settings.capacity
        if excess > 0:
            others = [track for track in self._living() if track.id not in named]
            removed = self._forget(heapq.nsmallest(excess, others, key=lambda track: track.used))
        while len(self._free) < len(new):
            self._grow()
        for name in new:
            row = self._free.pop()
            self._index[name] = self._tracks[row] = _Track(name, row)
        return removed

    def _grow(self) -> None:
        extra = self.allocated  # doubling: growth costs a constant per track in the long run
        self._free = list(range(self.allocated + extra - 1, self.allocated - 1, -1)) + self._free
        self._tracks += [None] * extra
        self.allocated += extra

    def _column(self, camera: str) -> int:
        if camera not in self.cameras:
            self.cameras.append(camera)
            for track in self._living():
                track.views.append(0)
        return self.cameras.index(camera)

    def _note(
        self, named: dict[str, int], camera: str, stamp: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Write the views down: their positions, rows, and which begin again.  3 x [kept]"""
        column, oldest_first = self._column(camera), max(stamp - self._max_age, 1) if self._max_age > 0 else 1
        rows, fresh = [], []
        for name in named:
            track = self._index[name]
            track.used = max(track.used, stamp)
            track.newest = max(track.newest, stamp)
            begins = track.first < oldest_first
            if begins:
                track.first = stamp
                track.views = [0] * len(self.cameras)
            track.views[column] += 1
            rows.append(track.row)
            fresh.append(begins)
        if named:
            self._remember(camera, stamp, named)
        self._oldest_newest = min(self._oldest_newest, stamp)
        return np.array(list(named.values()), np.intp), np.array(rows, np.intp), np.array(fresh, bool)

    def _remember(self, camera: str, stamp: int, names: Iterable[str]) -> None:
        fused = self._fused[camera]
        fused[stamp] = (*fused.get(stamp, ()), *map(hash, names))
        if len(fused) > REMEMBERED:
            del fused[min(fused)]

    def _forget_idle(self) -> list[tuple[str, int]]:
        assert self._clock.newest is not None
        oldest = self._clock.newest - self._idle_timeout
        if oldest <= self._oldest_newest:  # nobody can be idle, as in most frames
            return []
        removed = self._forget([track for track in self._living() if track.used < oldest])
        self._oldest_newest = min((t.used for t in self._index.values()), default=self._clock.newest)
        return removed

    def _forget(self, tracks: Iterable[_Track]) -> list[tuple[str, int]]:
        removed = [(track.id, track.row) for track in tracks]
        for name, row in removed:
            del self._index[name]
            self._tracks[row] = None
            self._free.append(row)
        return removed
