"""SIGINT and SIGTERM: the first may interrupt what takes long, the others change nothing."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """Notes every signal; raises KeyboardInterrupt for the first, and only where that does no harm.

    An interrupt in the midst of freeing things would leave them half freed. What spins needs none: rclpy's
    own handlers shut ROS down, and call these as well.
    """

    def __init__(self) -> None:
        self.came = False
        self._interrupts = False

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)
        sys.excepthook, sys.unraisablehook = _print_uncaught, _print_unraisable

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """The first signal ends the block with a KeyboardInterrupt, also one that came before.

        C code and destructors may swallow the interrupt (scipy's Sobol sequences do): the end raises it anew.
        """
        self._interrupts = True
        try:
            if not self.came:
                yield
        finally:
            self._interrupts = False
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt


def _print_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """As Python does, but for interrupts, which C code that swallows them reports here."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _print_unraisable(unraisable: Any) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


STOP = StopSignals()
