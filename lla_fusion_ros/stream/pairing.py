"""Pairs two streams of messages of one camera by their stamps; bounded, and indifferent to clock jumps.

Rules ("first" are images and "second" their detections, or views and their embeddings):
- A message is paired with the waiting message of the other stream whose stamp is nearest, if that is
  within the tolerance; both are then used up. Of several equally near ones the latest arrival is taken.
  A second message goes with none where a first one of a nearer stamp has been seen, and is gone.
- Otherwise it waits, but no longer than `wait` and in no more than `memory` bytes for each stream; the one
  that came first goes and is counted; the newest always may wait. Late and swapped messages need no care.
- A second message that comes more than `lead` before the first of its stamp is early. Transport makes single
  ones early; where most are, their stamps are wrong: nothing is detected in an image that does not exist yet,
  so the image of that stamp is not theirs. Early ones are therefore used only while most of the last
  `REMEMBERED` pairs were not early, and refused while nothing is known. Those that came before any first
  message are used as long as no first message is left without one: the other stream only began later.
- A stream of which two messages in a row are more than `STEP_BACK` behind its newest (a looped bag, a
  restarted simulation) has begun another time: what waits of it from the time ahead could meet a
  message of the same stamp and another world. It goes, counted as unpaired.

Stamps are message time; `now` is the time of arrival, by the clock of a live node or of a bag's recorder;
`received`, where it is known, the time at which the middleware got it, which a busy node takes later.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

SECOND = 1_000_000_000  # in nanoseconds
STEP_BACK = 2 * SECOND  # messages that are merely late lag less
REMEMBERED = 10  # pairs by which it is judged whether being early is the rule
MOST_WAITING = 1000  # messages of a stream; only a flood of tiny ones comes to this
OVERHEAD = 1000  # bytes that a waiting message takes beside its data

Loss = Literal["first", "second", "second_early", "second_late"]
First = TypeVar("First")
Second = TypeVar("Second")
Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Limits:
    """How messages are paired: nanoseconds and bytes; `lead` is None where order tells nothing."""

    tolerance: int = 0
    wait: int = 2 * SECOND
    memory: int = 256_000_000
    lead: int | None = None


class Misfit(NamedTuple):
    """What was measured of the last second message that found no partner, in nanoseconds.

    second_early: its stamp minus that of the newest first message when it came.
    second_late: the time from its partner's arrival to its own.
    second: its stamp minus that of the nearest first message.
    """

    loss: Loss
    nanoseconds: int


@dataclass(frozen=True, slots=True, eq=False)
class _Entry(Generic[Message]):
    stamp: int
    message: Message
    size: int
    arrived: int
    received: int = 0  # of the second stream only, as what follows
    newest_first: int | None = None  # the other stream's newest stamp on arrival
    late_by: int | None = None  # its partner had waited in vain


class StampMatcher(Generic[First, Second]):
    """Two bounded waiting lines. `offset` nanoseconds are added to the stamps of the second stream."""

    def __init__(self, limits: Limits, offset: int = 0) -> None:
        self.limits = limits
        self.misfit: Misfit | None = None
        self._offset = offset
        self._first: _Line[First] = _Line()
        self._second: _Line[Second] = _Line()
        self._first_stamps: deque[int] = deque(maxlen=MOST_WAITING)
        self._gone: deque[tuple[int, int]] = deque(maxlen=MOST_WAITING)  # stamp, arrival of firsts that left
        self._early: deque[bool] = deque(maxlen=REMEMBERED)
        self._losses: Counter[Loss] = Counter()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many messages of each stream wait."""
        return len(self._first.entries), len(self._second.entries)

    def add_first(
        self, stamp: int, message: First, now: int, size: int = 0, received: int | None = None
    ) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        self.expire(now)
        self._losses["first"] += len(self._first.arrive(stamp))
        self._first_stamps.append(stamp)
        partner = self._second.nearest(stamp)
        if partner is not None and self._fit(stamp, partner.stamp):
            self._second.remove(partner)
            if self._believes(partner, now if received is None else received):
                return message, partner.message
        self._leave_first(self._first.wait(_Entry(stamp, message, size + OVERHEAD, now), self.limits.memory))
        return None

    def add_second(
        self, stamp: int, message: Second, now: int, size: int = 0, received: int | None = None
    ) -> tuple[First, Second] | None:
        """The pair that this message completes, if any."""
        self.expire(now)
        stamp += self._offset
        self._losses["second"] += len(self._second.arrive(stamp))
        partner = self._first.nearest(stamp)
        if partner is not None and self._fit(partner.stamp, stamp):
            self._first.remove(partner)
            self._early.append(False)
            return partner.message, message
        came = now if received is None else received
        late_by = self._late_by(stamp, now)
        entry = _Entry(stamp, message, size + OVERHEAD, now, came, self._first.newest, late_by)
        self._leave_second(self._second.wait(entry, self.limits.memory))
        return None

    def expire(self, now: int) -> None:
        """Let go of what has waited for too long."""
        self._leave_first(self._first.expire(now, self.limits.wait))
        self._leave_second(self._second.expire(now, self.limits.wait))

    def finish(self) -> None:
        """Nothing comes any more: what waits is lost. The misfits before that tell more than the end does."""
        before = self.misfit
        self._leave_first(self._first.clear())
        self._leave_second(self._second.clear())
        self.misfit = before or self.misfit

    def clear(self) -> None:
        """Forget what waits; it is no loss. Whether messages come early lies in the wiring, and is kept."""
        self._first.clear()
        self._second.clear()
        self._first_stamps.clear()
        self._gone.clear()

    def take_losses(self) -> Counter[Loss]:
        """How many messages left without a partner since the last call, by reason."""
        losses, self._losses = +self._losses, Counter()  # those above zero
        return losses

    def _fit(self, first: int, second: int) -> bool:
        apart = abs(first - second)
        if not 0 < apart <= self.limits.tolerance:
            return apart == 0
        return all(abs(stamp - second) >= apart for stamp in self._first_stamps)

    def _believes(self, second: _Entry[Second], received: int) -> bool:
        """Whether a second message that came before its partner may be paired with it."""
        if self.limits.lead is None:
            return True
        unpaired = bool(self._first.entries or self._gone)  # which stamps that are wrong leave behind
        if second.newest_first is None and not unpaired and not self._early:
            return True
        waited = received - second.received
        early = waited > self.limits.lead
        usual = 2 * sum(self._early) >= len(self._early)
        self._early.append(early)
        if not (early and usual):
            return True
        self._losses["second_early"] += 1
        ahead = waited if second.newest_first is None else second.stamp - second.newest_first
        self.misfit = Misfit("second_early", max(ahead, waited))
        return False

    def _late_by(self, stamp: int, now: int) -> int | None:
        near = (arrived for gone, arrived in self._gone if abs(gone - stamp) <= self.limits.tolerance)
        arrived = next(near, None)
        return None if arrived is None else now - arrived

    def _leave_first(self, entries: list[_Entry[First]]) -> None:
        self._losses["first"] += len(entries)
        self._gone.extend((entry.stamp, entry.arrived) for entry in entries)

    def _leave_second(self, entries: list[_Entry[Second]]) -> None:
        for entry in entries:
            if entry.late_by is not None:
                self._losses["second_late"] += 1
                self.misfit = Misfit("second_late", entry.late_by)
                continue
            self._losses["second"] += 1
            offsets = (entry.stamp - stamp for stamp in self._first_stamps)
            nearest = min(offsets, key=abs, default=None)
            self.misfit = None if nearest is None else Misfit("second", nearest)


class _Line(Generic[Message]):
    """Messages of one stream that wait for their partner, in the order they came."""

    def __init__(self) -> None:
        self.entries: deque[_Entry[Message]] = deque()
        self.newest: int | None = None
        self._behind = False
        self._size = 0

    def arrive(self, stamp: int) -> list[_Entry[Message]]:
        """Follow the stream's time; a single message from long ago may be a mistake, two are another time.

        What waits from the time ahead leaves and is returned.
        """
        behind = self.newest is not None and self.newest - stamp > STEP_BACK
        left: list[_Entry[Message]] = []
        if behind and self._behind:
            left = [entry for entry in self.entries if entry.stamp > stamp + STEP_BACK]
            for entry in left:
                self.remove(entry)
            self.newest, behind = stamp, False
        elif not behind:
            self.newest = stamp if self.newest is None else max(self.newest, stamp)
        self._behind = behind
        return left

    def wait(self, entry: _Entry[Message], memory: int) -> list[_Entry[Message]]:
        """Those that have to leave for this one."""
        self.entries.append(entry)
        self._size += entry.size
        left = []
        while len(self.entries) > 1 and (self._size > memory or len(self.entries) > MOST_WAITING):
            left.append(self._pop())
        return left

    def expire(self, now: int, wait: int) -> list[_Entry[Message]]:
        """Those that have waited for longer leave, but for the newest: DDS may take seconds to send again
        what was lost last."""
        left = []
        while len(self.entries) > 1 and now - self.entries[0].arrived > wait:
            left.append(self._pop())
        return left

    def nearest(self, stamp: int) -> _Entry[Message] | None:
        return min(reversed(self.entries), key=lambda entry: abs(entry.stamp - stamp), default=None)

    def remove(self, entry: _Entry[Message]) -> None:
        self.entries.remove(entry)
        self._size -= entry.size

    def clear(self) -> list[_Entry[Message]]:
        left = list(self.entries)
        self.entries.clear()
        self._size = 0
        self.newest, self._behind = None, False
        return left

    def _pop(self) -> _Entry[Message]:
        entry = self.entries.popleft()
        self._size -= entry.size
        return entry
