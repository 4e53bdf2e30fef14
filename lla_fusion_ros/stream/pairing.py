"""Pairs two streams of messages of one camera by their stamps; bounded, and indifferent to clock jumps.

Rules:
- A message is paired with the waiting message of the other stream whose stamp is nearest, if that is
  within the tolerance; both are then used up. Of several equally near ones the latest arrival is taken.
- Otherwise it waits. Each stream keeps its `depth` latest arrivals; the one that came first goes and is
  counted as unpaired. Late and swapped messages need no care.
- A stream of which two messages in a row are more than `STEP_BACK` behind its newest (a looped bag, a
  restarted simulation) has begun another time: what waits of it from the time ahead would else meet a
  message of the same stamp and another world. It goes, counted as unpaired.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

STEP_BACK = 2_000_000_000  # nanoseconds; messages that are merely late lag less

First = TypeVar("First")
Second = TypeVar("Second")
Waiting = TypeVar("Waiting")


class StampMatcher(Generic[First, Second]):
    """Two bounded waiting lines; `unpaired_first` and `unpaired_second` count what left them unused."""

    def __init__(self, tolerance: int, depth: int, offset: int = 0) -> None:
        """Times in nanoseconds; `offset` is added to the stamps of the second stream."""
        self.tolerance = tolerance
        self.offset = offset
        self._first: _Line[First] = _Line(depth)
        self._second: _Line[Second] = _Line(depth)

    @property
    def unpaired_first(self) -> int:
        return self._first.unpaired

    @property
    def unpaired_second(self) -> int:
        return self._second.unpaired

    @property
    def waiting(self) -> tuple[int, int]:
        """How many messages of each stream wait."""
        return len(self._first), len(self._second)

    def add_first(self, stamp: int, message: First) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        self._first.arrive(stamp)
        partner = self._second.take_nearest(stamp, self.tolerance)
        if partner is not None:
            return message, partner
        self._first.wait(stamp, message)
        return None

    def add_second(self, stamp: int, message: Second) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        stamp += self.offset
        self._second.arrive(stamp)
        partner = self._first.take_nearest(stamp, self.tolerance)
        if partner is not None:
            return partner, message
        self._second.wait(stamp, message)
        return None

    def clear(self) -> None:
        """Forget what waits."""
        self._first.clear()
        self._second.clear()


class _Line(Generic[Waiting]):
    """Messages of one stream that wait for their partner; `unpaired` counts those that left without one."""

    def __init__(self, depth: int) -> None:
        self._entries: deque[tuple[int, Waiting]] = deque(maxlen=depth)
        self._newest: int | None = None
        self._behind = False
        self.unpaired = 0

    def __len__(self) -> int:
        return len(self._entries)

    def arrive(self, stamp: int) -> None:
        """Follow the stream's time; a single message from long ago may be a mistake, two are another time."""
        behind = self._newest is not None and self._newest - stamp > STEP_BACK
        if behind and self._behind:
            self._forget_after(stamp + STEP_BACK)
            self._newest, behind = stamp, False
        elif not behind:
            self._newest = stamp if self._newest is None else max(self._newest, stamp)
        self._behind = behind

    def wait(self, stamp: int, message: Waiting) -> None:
        self.unpaired += len(self._entries) == self._entries.maxlen
        self._entries.append((stamp, message))

    def take_nearest(self, stamp: int, tolerance: int) -> Waiting | None:
        if not self._entries:
            return None
        latest_first = range(len(self._entries) - 1, -1, -1)
        index = min(latest_first, key=lambda i: abs(self._entries[i][0] - stamp))
        if abs(self._entries[index][0] - stamp) > tolerance:
            return None
        message = self._entries[index][1]
        del self._entries[index]
        return message

    def clear(self) -> None:
        self._entries.clear()
        self._newest, self._behind = None, False

    def _forget_after(self, limit: int) -> None:
        kept = [entry for entry in self._entries if entry[0] <= limit]
        self.unpaired += len(self._entries) - len(kept)
        self._entries.clear()
        self._entries.extend(kept)
