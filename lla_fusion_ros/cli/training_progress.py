"""The progress of a training run: loss, accuracy, stages of calibration, time left for all of it."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from lla_fusion_ros.cli.progress import SECONDS_BETWEEN_LINES, LiveBar
from lla_fusion_ros.lab.calibration.workload import TRAINED_CROP, Workload
from lla_fusion_ros.lab.training.train import Progress as TrainingStep
from lla_fusion_ros.types.printable import printable


class TrainingProgress(LiveBar):
    """A live bar on a terminal; in a log file a line per epoch and stage, and now and then within a stage."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            transient=False,
            numbers="",
            left="",
        )
        self._calibration: dict[str, float] = {}  # seconds that each stage is expected to take
        self._workload: Workload | None = None
        self._trained_crops = 0
        self._first: tuple[float, int] | None = None  # when the first training step was done, and which
        self._calibration_began = 0.0
        self._stage = ""
        self._said = 0.0

    def expect(self, work: Workload, trained_crops: int) -> None:
        """What comes: calibration, and so many crops shown to networks in training, all epochs together."""
        self._workload, self._trained_crops = work, trained_crops
        self._calibration = work.seconds()

    def tracks(self, done: int, total: int) -> None:
        """While a data set is rendered."""
        self._show(description="rendering tracks", completed=done, total=total)

    def tell(self, text: str) -> None:
        """A line that stays, above the bar."""
        self._bar.console.print(printable(text), highlight=False, markup=False, soft_wrap=True)

    def report(self, step: TrainingStep) -> None:
        """After every training step."""
        numbers = f"loss {step.loss:.3f}  accuracy {step.accuracy:.3f}"
        name = f"network {step.member + 1}, epoch {step.epoch}/{step.epochs}"
        left = self._training_left(step)
        left += sum(self._calibration.values())
        if self._live:
            self._show(
                description=name, completed=step.step, total=step.steps, numbers=numbers, left=_left(left)
            )
        elif step.last_of_epoch:
            self._log(f"{name}: {numbers}, {_left(left)}")

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        """At the beginning of every other stage, and while it goes on."""
        now = time.monotonic()
        left = self._left_after(name, done / total if total else 0.0, now)
        shown = "" if left is None else _left(left)
        if self._live:
            self._show(description=name, completed=done, total=total or None, numbers="", left=shown)
        elif name != self._stage or now - self._said >= SECONDS_BETWEEN_LINES:
            part = f": {done} of {total}" if done else ""
            self._log(f"{name}{part}" + (f", {shown}" if shown else ""))
            self._said = now
        self._stage = name

    def _training_left(self, step: TrainingStep) -> float:
        """Seconds of training; its pace also tells how long a crop will take in calibration."""
        now = time.monotonic()
        began, first = self._first = self._first or (now, step.step)  # the first step warms up
        if step.step == first:
            return 0.0
        seconds = (now - began) / (step.step - first)  # of a step
        if self._workload is not None and self._trained_crops:
            crop = seconds * step.steps / self._trained_crops / TRAINED_CROP
            self._calibration = self._workload.seconds(crop)
        return seconds * (step.steps - step.step)

    def _left_after(self, name: str, share: float, now: float) -> float | None:
        """Seconds to the end of calibration; its stages correct the expectation by how long they took."""
        if name not in self._calibration:
            return None
        self._calibration_began = self._calibration_began or now
        names = list(self._calibration)
        before = sum(self._calibration[each] for each in names[: names.index(name)])
        done = before + share * self._calibration[name]
        whole = sum(self._calibration.values())
        took = now - self._calibration_began
        # the expectation counts as if it had been seen for a tenth of the whole
        pace = (took + 0.1 * whole) / (done + 0.1 * whole) if whole else 1.0
        return (whole - done) * pace


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest:02d} s left" if minutes else f"about {rest} s left"
