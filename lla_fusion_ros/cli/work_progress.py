"""A progress bar for work that counts crops and then goes through named stages."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 10.0  # in a log file


class WorkProgress:
    """A live bar on a terminal; in a log file a line now and then."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._began = self._said = time.monotonic()
        self._done = 0

    def __enter__(self) -> WorkProgress:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def crops_expected(self, count: int) -> None:
        """How many crops the networks will see in all."""
        self._bar.update(self._task, total=count)

    def crops(self, count: int) -> None:
        """Some crops were classified, or their outputs found in the cache."""
        self._done += count
        self._bar.update(self._task, description="crops through the networks", completed=self._done)
        self._line(f"{self._done} crops through the networks")

    def part(self, name: str, done: int, total: int) -> None:
        """So much of a named part is done."""
        self._bar.update(self._task, description=name, completed=done, total=total)
        self._line(f"{name}: {done} of {total}")

    def stage(self, name: str) -> None:
        self._bar.update(self._task, description=name)
        self._line(name)

    def _line(self, text: str) -> None:
        now = time.monotonic()
        if not self._live and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            print(f"[{now - self._began:6.0f} s] {text}", file=sys.stderr, flush=True)
