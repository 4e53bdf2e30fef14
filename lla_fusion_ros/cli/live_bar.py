"""A bar that lives on a terminal; where nobody watches, its users may write lines instead."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID

Bar = TypeVar("Bar", bound="LiveBar")


class LiveBar:
    """One bar with one task, on standard error; a context manager."""

    def __init__(self, *columns: ProgressColumn, transient: bool, **fields: Any) -> None:
        console = Console(stderr=True)
        self._live = console.is_terminal
        self._bar = Progress(*columns, console=console, disable=not self._live, transient=transient)
        self._task: TaskID = self._bar.add_task("", total=None, **fields)
        self._began = time.monotonic()

    def __enter__(self: Bar) -> Bar:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def _show(self, **values: Any) -> None:
        self._bar.update(self._task, **values)

    def _log(self, text: str) -> None:
        """A line for a log file, with the seconds since the beginning."""
        print(f"[{time.monotonic() - self._began:6.0f} s] {text}", file=sys.stderr, flush=True)
