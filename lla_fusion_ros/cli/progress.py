"""What a verb is doing: a live bar on a terminal; lines now and then in a log file."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lla_fusion_ros.cli.words import talk

if TYPE_CHECKING:
    from lla_fusion_ros.bags.reader import Bag

SECONDS_BETWEEN_LINES = 10.0  # of one stage, in a log file
Bar = TypeVar("Bar", bound="LiveBar")


class LiveBar:
    """One bar with one task, on standard error; a context manager."""

    def __init__(self, *columns: ProgressColumn, transient: bool, **fields: Any) -> None:
        console = Console(stderr=True)
        self._live = console.is_terminal and talk.level == 0
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
        if talk.level >= 0:
            print(f"[{time.monotonic() - self._began:6.0f} s] {text}", file=sys.stderr, flush=True)


class BagProgress(LiveBar):
    """Recorded seconds done, views per second and time left; silent where nobody watches."""

    def __init__(self, what: str) -> None:
        columns = (
            TextColumn(what),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[views]} views"),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, transient=True, views=0)
        self._views = 0

    def report(self, bag: Bag, time: int, views: int) -> None:
        self._views += views
        done = (time - bag.summary.start) / 1e9
        self._show(completed=done, total=bag.summary.duration or None, views=self._views)

    def count(self, done: int, total: int, views: int) -> None:
        """Progress in frames, where there is no recorded time yet."""
        self._show(completed=done, total=total, views=views)


class FleetProgress(LiveBar):
    """Bags done, failed, and time left; in a log file a line now and then."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}"),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, transient=True, failed="")
        self._said = self._began

    def report(self, what: str, done: int, total: int, failed: int) -> None:
        words = f"{failed} failed" if failed else ""
        self._show(description=what, completed=done, total=total or None, failed=words)
        if not self._live and time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            self._log(f"{what}: {done} of {total}{f', {words}' if words else ''}")


class WorkProgress(LiveBar):
    """A live bar on a terminal; in a log file a line now and then."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        super().__init__(*columns, transient=True)
        self._said = self._began
        self._done = 0

    def tracks(self, done: int, total: int) -> None:
        """While a data set is rendered."""
        self.part("rendering tracks", done, total)

    def crops_expected(self, count: int) -> None:
        """How many crops the networks will see in all."""
        self._show(total=count, completed=0)

    def crops(self, count: int) -> None:
        """Some crops were classified, or their outputs found in the cache."""
        self._done += count
        self._show(description="crops through the networks", completed=self._done)
        self._now_and_then(f"{self._done} crops through the networks")

    def part(self, name: str, done: int, total: int) -> None:
        """So much of a named part is done."""
        self._show(description=name, completed=done, total=total)
        self._now_and_then(f"{name}: {done} of {total}")

    def stage(self, name: str) -> None:
        self._show(description=name)
        self._now_and_then(name)

    def _now_and_then(self, text: str) -> None:
        now = time.monotonic()
        if not self._live and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            self._log(text)
