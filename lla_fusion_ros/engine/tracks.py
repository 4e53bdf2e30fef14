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
  frame. A track remembers its last 32 views for this; a view older than all of them is dropped as late.
- *Identity switch*: whoever detects it calls `restart`; the track keeps its row and begins again.
- Empty ids and ids longer than 256 characters are dropped (`empty_id`, `long_id`).
Every drop is counted with its reason.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.engine.clock import MessageClock
from lla_fusion_ros.types.settings import FusionSettings

SECOND = 1_000_000_000
REMEMBERED = 32  # views that a track keeps the stamps and cameras of to recognise duplicates
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
        first: the stamp that its age counts from.
        newest: its newest stamp.
        used: the newest stamp of the object that it belongs to.
        recent: stamp and column of the camera of its last views; empty before the first.
        views: how many views of each camera were fused.
    """

    __slots__ = ("first", "id", "newest", "recent", "row", "used", "views")

    def __init__(self, track_id: str, row: int) -> None:
        self.id = track_id
        self.row = row
        self.first = self.newest = self.used = 0
        self.views: list[int] = []
        self.recent: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def refusal(self, view: tuple[int, int]) -> str:
        """Why a view out of order may not be fused; empty where it may."""
        if view in self.recent:
            return "duplicate"
        full = len(self.recent) == REMEMBERED
        return "late" if full and view[0] < min(stamp for stamp, _ in self.recent) else ""


class TrackStore:
    """Rows of tracks. `allocated` is the number of rows that the state arrays must have."""

    def __init__(self, settings: FusionSettings) -> None:
        self.allocated = min(FIRST_ROWS, settings.capacity)
        self.cameras: list[str] = []
        self._index: dict[str, _Track] = {}
        self._tracks: list[_Track | None] = [None] * self.allocated  # by row
        self._free = list(range(self.allocated - 1, -1, -1))
        self._oldest_newest = 0  # no track's newest view is older than this
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
        return self._forget(self._living())

    def admit(self, camera: str, stamp: int, ids: Sequence[str]) -> Admission:
        """Decide about every detection of one frame of one camera."""
        dropped: defaultdict[str, int] = defaultdict(int)
        removed: list[tuple[str, int]] = []
        judgement = self._clock.judge(camera, stamp)
        if judgement in ("late", "no_stamp"):
            dropped[judgement] += len(ids)
            nobody = np.zeros(0, np.intp)
            return Admission(nobody, nobody, np.zeros(0, bool), (), dict(dropped), False)
        if judgement == "jump":
            removed += self._forget(self._living())
        removed += self._forget_idle()
        named = self._named(ids, dropped)
        removed += self._begin_new(named)
        column = self._column(camera)
        kept, rows, fresh = self._note(named, column, stamp, dropped)
        return Admission(kept, rows, fresh, tuple(removed), dict(dropped), judgement == "jump")

    def member_rows(self, members: Sequence[str], stamp: int) -> list[int]:
        """The rows of tracks that are one object, seen at this time, as far as they are known."""
        known = [track for track in map(self._index.get, members) if track is not None]
        for track in known:
            track.used = max(track.used, stamp)
        return [track.row for track in known]

    def empty(self, rows: np.ndarray) -> None:
        """The tracks of these rows have seen nothing that counts."""
        for track in self._of(rows):
            track.first = track.newest
            track.views = [0] * len(self.cameras)

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
        self, named: dict[str, int], column: int, stamp: int, dropped: dict[str, int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Write the views down that are in time: their positions, rows, and which begin again.  3 x [kept]"""
        view, oldest_first = (stamp, column), stamp - self._max_age if self._max_age > 0 else 0
        kept, rows, fresh = [], [], []
        for name, position in named.items():
            track = self._index[name]
            track.used = max(track.used, stamp)
            if stamp > track.newest:
                track.newest = stamp
            elif reason := track.refusal(view):  # out of order, as hardly ever
                dropped[reason] += 1
                continue
            begins = not track.recent or track.first < oldest_first
            if begins:
                track.first = stamp
                track.views = [0] * len(self.cameras)
            track.views[column] += 1
            track.recent.append(view)
            kept.append(position)
            rows.append(track.row)
            fresh.append(begins)
        self._oldest_newest = min(self._oldest_newest, stamp)
        return np.array(kept, np.intp), np.array(rows, np.intp), np.array(fresh, bool)

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
