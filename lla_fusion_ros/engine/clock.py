"""Message time of several cameras: which frames are in time, which are late, and when the clock jumped back.

Rules, in this order (stamps in nanoseconds; "behind" is measured from the newest stamp of any camera):
1. A stamp of zero or less is an unset header: `no_stamp`.
2. A frame at most `max_lateness` behind is accepted, in whatever order frames come.
3. A frame more than `clock_jump` behind, from a camera whose own stamps went back as far (or that is new),
   means that the clock jumped back, as when a bag is looped: `jump`. The frame itself is good and opens
   a new epoch.
4. Anything else that is behind is `late`. Ten such frames in a row, all more than `clock_jump` behind, are
   a jump too: one frame with a stamp from the future must not silence the other cameras for good.
   Where a camera leapt ahead with a single frame, the next one of any camera near the time before is a jump.
5. After a jump, frames of the old epoch may still be under way from other cameras: up to ten frames whose
   stamps lie near the old newest, from cameras not yet seen in the new epoch, are `late`.
"""

from __future__ import annotations

from typing import Literal

Judgement = Literal["accepted", "jump", "late", "no_stamp"]
PATIENCE = 10  # frames


class MessageClock:
    """The newest stamp of each camera and of all."""

    def __init__(self, max_lateness: int, clock_jump: int) -> None:
        self.max_lateness = max_lateness
        self.clock_jump = clock_jump
        self.newest: int | None = None
        self._by_camera: dict[str, int] = {}
        self._late_run = 0
        self._old_newest: int | None = None
        self._stale_left = 0
        self._before_leap: int | None = None  # the newest stamp before a single frame far ahead of it

    def reset(self) -> None:
        """Forget everything, as at the start."""
        self.newest = None
        self._by_camera = {}
        self._late_run = 0
        self._old_newest = None
        self._before_leap = None

    def judge(self, camera: str, stamp: int) -> Judgement:
        """What to do with a frame of that camera and stamp; remembers it where it counts."""
        if stamp <= 0:
            return "no_stamp"
        if self.newest is None:
            return self._accept(camera, stamp)
        behind = self.newest - stamp
        if behind <= self.max_lateness:
            return "late" if self._is_stale(camera, stamp) else self._accept(camera, stamp)
        if behind > self.clock_jump:
            self._late_run += 1
            own = self._by_camera.get(camera)
            went_back = own is None or own - stamp > self.clock_jump
            if went_back or self._ends_leap(stamp) or self._late_run >= PATIENCE:
                return self._jump(camera, stamp)
        return "late"

    def _accept(self, camera: str, stamp: int) -> Judgement:
        self._before_leap = self.newest if self._leaps(camera, stamp) else None
        self.newest = stamp if self.newest is None else max(self.newest, stamp)
        self._by_camera[camera] = max(self._by_camera.get(camera, stamp), stamp)
        self._late_run = 0
        return "accepted"

    def _jump(self, camera: str, stamp: int) -> Judgement:
        old_newest = self.newest
        self.reset()
        self._accept(camera, stamp)
        self._old_newest = old_newest
        self._stale_left = PATIENCE
        return "jump"

    def _leaps(self, camera: str, stamp: int) -> bool:
        """Whether a camera's own stamps, and with them the newest of all, jump ahead."""
        own = self._by_camera.get(camera)
        if own is None or self.newest is None:
            return False
        return min(stamp - own, stamp - self.newest) > self.clock_jump

    def _ends_leap(self, stamp: int) -> bool:
        """Whether the newest frame stands alone in the future and this one goes on where time was."""
        return self._before_leap is not None and stamp >= self._before_leap - self.max_lateness

    def _is_stale(self, camera: str, stamp: int) -> bool:
        if self._old_newest is None or camera in self._by_camera or self._stale_left == 0:
            return False
        assert self.newest is not None
        ahead = stamp - self.newest > self.clock_jump
        if ahead and abs(stamp - self._old_newest) <= self.clock_jump:
            self._stale_left -= 1
            return True
        return False
