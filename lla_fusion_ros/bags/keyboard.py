"""Single key presses of a terminal, without waiting for Enter."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any


class Keys:
    """Key presses while the block runs; none where standard input is not a terminal."""

    def __init__(self) -> None:
        self._saved: list[Any] | None = None

    def __enter__(self) -> Keys:
        # A background job must not touch the terminal: that would stop it.
        if sys.stdin.isatty() and os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno()):
            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
