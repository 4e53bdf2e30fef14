"""Running a long command: output to a log, its newest line to the screen, its failure into one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# Without a terminal (CI) a line every few seconds is enough to see that it is alive.
SECONDS_BETWEEN_LINES = 5.0


class SetupError(Exception):
    """The set-up cannot go on; the text is one sentence that says what to do."""


class Progress:
    """Prints "[2/4] packages", below it the newest line of the running command, and how long it took."""

    def __init__(self, steps: int, log_path: Path) -> None:
        self.steps = steps
        self.log_path = log_path
        self._step = 0
        self._terminal = sys.stdout.isatty()

    def start(self, title: str) -> None:
        self._step += 1
        print(f"[{self._step}/{self.steps}] {title}", flush=True)

    def run(
        self, command: Sequence[str | Path], env: Mapping[str, str], failure: str, lines_on_failure: int = 12
    ) -> None:
        """Run to the end; on failure show the last lines of the log and raise SetupError(failure)."""
        begin = shown = time.monotonic()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log_path, "a", encoding="utf-8", errors="replace") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n")
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=dict(env),
            )
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                log.write(line)
                log.flush()
                lines.append(line.rstrip())
                now = time.monotonic()
                due = self._terminal or now - shown > SECONDS_BETWEEN_LINES
                if due and not line.startswith("WARNING"):
                    shown = now
                    self._show(now - begin, line)
            code = process.wait()
        if self._terminal:
            print("\r\033[K", end="", flush=True)
        if code != 0:
            if lines_on_failure:
                print("\n".join(lines[-lines_on_failure:]), file=sys.stderr)
            raise SetupError(explain(lines, failure, self.log_path))

    def _show(self, seconds: float, line: str) -> None:
        text = f"      {seconds:4.0f} s  {line.strip()}"
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{text[:width]}", end="", flush=True)
        else:
            print(text[:110], flush=True)


def explain(lines: Sequence[str], failure: str, log_path: Path) -> str:
    """The sentence for a failed command, by what it printed."""
    text = "\n".join(lines)
    if "No space left on device" in text:
        return f"the disk is full; free some space and run it again (log: {log_path})"
    if (
        "Temporary failure in name resolution" in text
        or "Connection refused" in text
        or "ConnectTimeout" in text
    ):
        return f"the package index cannot be reached; check the network and run it again (log: {log_path})"
    return f"{failure} (log: {log_path})"


def clean_environment() -> dict[str, str]:
    """The environment without what another virtual environment, its ROS wheels or make have left in it.

    Also without PYTHONDONTWRITEBYTECODE: unless the modules are compiled once, every start takes seconds.
    """
    env = dict(os.environ)
    foreign = ["PYTHONHOME", "VIRTUAL_ENV", "_ROS_WHEELS_BOOTSTRAP_COMPLETE", "MAKEFLAGS", "MAKELEVEL"]
    for name in [*foreign, "PYTHONDONTWRITEBYTECODE"]:
        env.pop(name, None)
    return env
