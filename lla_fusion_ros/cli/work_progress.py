"""A progress bar for work that counts crops and then goes through named stages."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from lla_fusion_ros.cli.live_bar import LiveBar

SECONDS_BETWEEN_LINES = 10.0  # in a log file


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
