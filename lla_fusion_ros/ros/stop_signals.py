"""SIGINT and SIGTERM: the first may interrupt what takes long, the others change nothing."""

from __future__ import annotations

import signal
from types import FrameType


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

    def interrupt(self, wanted: bool) -> None:
        """Whether the first signal raises from now on; at once where it came already."""
        self._interrupts = wanted
        if wanted and self.came:
            self._interrupts = False
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt


STOP = StopSignals()
