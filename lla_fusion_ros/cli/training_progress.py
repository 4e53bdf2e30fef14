"""The progress bar of a training run: loss, accuracy, time left, then the stages of calibration."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lla_fusion_ros.training.train import Progress as TrainingStep


class TrainingProgress:
    """A live bar on a terminal, one line per epoch in a log file."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._bar.add_task("", total=None, numbers="")
        self._began = time.monotonic()

    def __enter__(self) -> TrainingProgress:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def report(self, step: TrainingStep) -> None:
        """After every training step."""
        numbers = f"loss {step.loss:.3f}  accuracy {step.accuracy:.3f}"
        if self._live:
            name = f"network {step.member + 1}, epoch {step.epoch}/{step.epochs}"
            self._bar.update(
                self._task, description=name, completed=step.step, total=step.steps, numbers=numbers
            )
        elif step.last_of_epoch:
            self._line(f"network {step.member + 1}, epoch {step.epoch}/{step.epochs}: {numbers}", step)

    def stage(self, name: str) -> None:
        """At the beginning of every later stage."""
        if self._live:
            self._bar.update(self._task, description=name, completed=0, total=None, numbers="")
        else:
            self._line(name)

    def _line(self, text: str, step: TrainingStep | None = None) -> None:
        seconds = time.monotonic() - self._began
        left = "" if step is None else f", {seconds / step.step * (step.steps - step.step):.0f} s left"
        print(f"[{seconds:6.0f} s] {text}{left}", file=sys.stderr, flush=True)
