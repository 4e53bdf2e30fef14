"""The progress bar of a training run: loss, accuracy, time left, then the stages of calibration."""

from __future__ import annotations

import time

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lla_fusion_ros.cli.live_bar import LiveBar
from lla_fusion_ros.training.train import Progress as TrainingStep


class TrainingProgress(LiveBar):
    """A live bar on a terminal, one line per epoch in a log file."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            transient=False,
            numbers="",
        )

    def tracks(self, done: int, total: int) -> None:
        """While a data set is rendered."""
        self._show(description="rendering tracks", completed=done, total=total)

    def report(self, step: TrainingStep) -> None:
        """After every training step."""
        numbers = f"loss {step.loss:.3f}  accuracy {step.accuracy:.3f}"
        name = f"network {step.member + 1}, epoch {step.epoch}/{step.epochs}"
        if self._live:
            self._show(description=name, completed=step.step, total=step.steps, numbers=numbers)
        elif step.last_of_epoch:
            left = (time.monotonic() - self._began) / step.step * (step.steps - step.step)
            self._log(f"{name}: {numbers}, {left:.0f} s left")

    def stage(self, name: str) -> None:
        """At the beginning of every later stage."""
        if self._live:
            self._show(description=name, completed=0, total=None, numbers="")
        else:
            self._log(name)
