"""A progress bar over the recorded time of a bag, and the table of scores."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from lla_fusion_ros.cli.live_bar import LiveBar

if TYPE_CHECKING:
    from lla_fusion_ros.bags.reader import Bag
    from lla_fusion_ros.replay.scoring import ReplayScores


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


def print_scores(scores: ReplayScores, used: str) -> None:
    """The scores as a table on standard output."""
    table = Table(box=None, header_style="bold")
    for column in ("fuser", "accuracy", "NLL", "ECE", "AUROC", "last accuracy"):
        table.add_column(column, justify="left" if column == "fuser" else "right")
    for row in scores.fusers:
        auroc = "-" if row.auroc is None else f"{row.auroc:.3f}"
        cells = (f"{row.accuracy:.3f}", f"{row.nll:.3f}", f"{row.ece:.3f}", auroc, f"{row.last_accuracy:.3f}")
        table.add_row(row.fuser, *cells, style="bold green" if row.fuser == used else None)
    Console(file=sys.stdout).print(table)
    warnings = scores.warnings
    parts = [f"false alarms on {warnings.false_alarms} of {warnings.inside} ordinary tracks"]
    if warnings.switches:
        parts.insert(0, f"{warnings.switches_seen} of {warnings.switches} identity switches seen")
    if warnings.outside:
        parts.insert(0, f"{warnings.outside_warned} of {warnings.outside} unknown objects found")
    print(f"warnings: {', '.join(parts)}")
