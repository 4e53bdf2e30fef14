"""Real processes under test: started, watched, stopped as a person would (Ctrl-C), with their log at hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .waiting import DEFAULT_TIMEOUT, wait_for

REPOSITORY = Path(__file__).resolve().parents[2]


class ProcessDied(AssertionError):
    """The process ended by itself; the message holds its log."""


class RosProcess:
    """One child process whose output goes to a file.

    Attributes:
        name: how it is called in messages
        log_path: file with its stdout and stderr together
        popen: the `subprocess.Popen`
    """

    def __init__(self, command: Sequence[str], name: str, log_path: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.log_path = log_path
        self._stopping = False
        with open(log_path, "wb") as log:
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(env)
            )

    @property
    def log(self) -> str:
        """Everything it has printed so far."""
        return self.log_path.read_text(errors="replace")

    def check(self) -> None:
        """Fail the test, with the log, if the process has ended although nobody asked it to."""
        code = self.popen.poll()
        if code is not None and not self._stopping:
            raise ProcessDied(f"{self.name} ended by itself with exit code {code}; its log:\n{self.log}")

    def wait_for_log(self, text: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Wait until `text` stands in the log."""

        def printed() -> bool:
            if text in self.log:
                return True
            self.check()
            return False

        try:
            wait_for(printed, timeout, f"{text!r} in the log of {self.name}")
        except ProcessDied:
            raise
        except AssertionError as error:
            raise AssertionError(f"{error}; its log:\n{self.log}") from None

    def expect_end(self) -> None:
        """It may end by itself from now on."""
        self._stopping = True

    def wait(self, timeout: float = DEFAULT_TIMEOUT) -> int:
        """Wait for an end that is expected (a script that finishes); returns the exit code."""
        self._stopping = True
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} still runs after {timeout:g} s; its log:\n{self.log}"
            ) from None

    def stop(self, sig: int = signal.SIGINT, timeout: float = 20.0) -> int:
        """Send Ctrl-C (or another signal), return the exit code; a process that ignores it fails the test."""
        self._stopping = True
        if self.popen.poll() is None:
            self.popen.send_signal(sig)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(
                f"{self.name} ignored signal {sig} for {timeout:g} s; its log:\n{self.log}"
            ) from None


def python_command(target: str | Path, arguments: Sequence[str]) -> list[str]:
    """Command line for a module (`lla_fusion_ros.ros NAME` runs a node), a script's path, or Python source.

    Source is what contains a line break; it is handed over with `-c`.
    """
    target = str(target)
    if "\n" in target:
        return [sys.executable, "-u", "-c", target, *arguments]
    if target.endswith(".py"):
        return [sys.executable, "-u", target, *arguments]
    return [sys.executable, "-u", "-m", *target.split(), *arguments]


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with the repository importable and numpy kept to one thread."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), env.get("PYTHONPATH", "")]))
    env.setdefault("OMP_NUM_THREADS", "1")
    env["PYTHONUNBUFFERED"] = "1"
    env.update(extra or {})
    return env
