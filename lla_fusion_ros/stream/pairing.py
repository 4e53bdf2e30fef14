"""Pairs two streams of messages of one camera by their stamps; bounded, and indifferent to clock jumps.

Rules:
- A message is paired with the waiting message of the other stream whose stamp is nearest, if that is
  within the tolerance; both are then used up.
- Otherwise it waits. Each stream keeps its `depth` latest arrivals; the one that came first goes and is
  counted as unpaired. Nothing depends on the order of stamps, so late frames and looped bags need no care.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


class StampMatcher(Generic[First, Second]):
    """Two bounded waiting lines; `unpaired_first` and `unpaired_second` count what left them unused."""

    def __init__(self, tolerance: int, depth: int, offset: int = 0) -> None:
        """Times in nanoseconds; `offset` is added to the stamps of the second stream."""
        self.tolerance = tolerance
        self.offset = offset
        self._first: deque[tuple[int, First]] = deque(maxlen=depth)
        self._second: deque[tuple[int, Second]] = deque(maxlen=depth)
        self.unpaired_first = 0
        self.unpaired_second = 0

    def add_first(self, stamp: int, message: First) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        partner = _take_nearest(self._second, stamp, self.tolerance)
        if partner is not None:
            return message, partner
        self.unpaired_first += len(self._first) == self._first.maxlen
        self._first.append((stamp, message))
        return None

    def add_second(self, stamp: int, message: Second) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        stamp += self.offset
        partner = _take_nearest(self._first, stamp, self.tolerance)
        if partner is not None:
            return partner, message
        self.unpaired_second += len(self._second) == self._second.maxlen
        self._second.append((stamp, message))
        return None

    def clear(self) -> None:
        """Forget what waits."""
        self._first.clear()
        self._second.clear()


Waiting = TypeVar("Waiting")


def _take_nearest(waiting: deque[tuple[int, Waiting]], stamp: int, tolerance: int) -> Waiting | None:
    if not waiting:
        return None
    index = min(range(len(waiting)), key=lambda i: abs(waiting[i][0] - stamp))
    if abs(waiting[index][0] - stamp) > tolerance:
        return None
    message = waiting[index][1]
    del waiting[index]
    return message
