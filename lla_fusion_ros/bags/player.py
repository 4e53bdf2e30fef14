"""Playing a bag: when each message is due, by rate, start, loops and pauses, and the keys that pause it.

Without ROS and without sleeping."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.types.errors import BagError, InputError


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """How a bag is played.

    Attributes:
        rate: recorded seconds per second.
        start: seconds to skip at the beginning.
        loop: begin again at the end, with the recorded stamps: nodes see a backward clock jump.
    """

    rate: float = 1.0
    start: float = 0.0
    loop: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1000:
            raise InputError(f"rate is {self.rate:g}, it must be above 0 and at most 1000")
        if self.start < 0:
            raise InputError(f"start is {self.start:g} s, it must not be negative")


class PlayClock:
    """Recorded time as it runs during playing; `now` is the wall clock in seconds."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._now = now
        self._recorded = 0  # recorded time at the anchor, ns
        self._anchor = now()
        self.paused = False

    def restart(self, recorded: int) -> None:
        """Set the recorded time, at the beginning and at each loop."""
        self._recorded, self._anchor = recorded, self._now()

    def time(self) -> int:
        """Recorded time in nanoseconds."""
        if self.paused:
            return self._recorded
        return self._recorded + int((self._now() - self._anchor) * self._rate * 1e9)

    def toggle(self) -> None:
        """Pause, or go on from where it paused."""
        self.restart(self.time())
        self.paused = not self.paused

    def until(self, recorded: int) -> float | None:
        """Wall seconds until a recorded time comes (0 when it has come); None while paused."""
        if self.paused:
            return None
        return max(0.0, (recorded - self.time()) / 1e9 / self._rate)


def rounds(
    bag: Bag, topics: Collection[str], options: PlayOptions
) -> Iterator[tuple[int, Iterator[Message]]]:
    """Recorded start time and messages of each pass over the bag; one pass unless looping."""
    start = bag.summary.start + int(options.start * 1e9)
    if bag.summary.count == 0:
        raise BagError(f"bag '{bag.path}' holds no messages")
    if start > bag.summary.end:
        raise BagError(
            f"--start {options.start:g} is beyond the end of '{bag.path}', "
            f"which lasts {bag.summary.duration:.1f} s"
        )
    while True:
        yield start, bag.messages(topics, start)
        if not options.loop:
            return


def latched_before(bag: Bag, start: int) -> list[Message]:
    """The last message of every latched topic before `start`: expected although skipped."""
    names = {topic.name for topic in bag.summary.topics if topic.latched}
    last: dict[str, Message] = {}
    for message in bag.messages(names) if names else ():
        if message.time >= start:
            break
        last[message.topic] = message
    return list(last.values())


class Keys:
    """Single key presses, without Enter, while the block runs; none where standard input is no terminal."""

    def __init__(self) -> None:
        self._saved: list[Any] | None = None

    def __enter__(self) -> Keys:
        # A background job must not touch the terminal: that would stop it.
        if sys.stdin.isatty() and os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno()):
            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)

    @property
    def active(self) -> bool:
        return self._saved is not None

    def pressed(self) -> str:
        """The next key that was pressed, or "" where none was."""
        if self._saved is None or not select.select([sys.stdin], [], [], 0)[0]:
            return ""
        return sys.stdin.read(1)
