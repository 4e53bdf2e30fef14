"""The demo's child processes: own DDS domain, own logs, stopped as a person would (Ctrl-C)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from lla_fusion_ros.types.errors import LlaFusionError

# Above 101 the DDS ports of a domain reach into Linux's range of ephemeral ports.
_DOMAINS = range(1, 102)
_PATIENCE = 8.0  # seconds for a process to end by itself


class DemoError(LlaFusionError):
    """A process of the demo failed; the sentence names its log."""


class Processes:
    """Children of the demo; leaving the `with` block ends all that still run.

    Args:
        domain: DDS domain; None takes one at random, so that the demo meets no other ROS on this machine.
    """

    def __init__(self, logs: Path, domain: int | None = None) -> None:
        self.logs = logs
        self._children: dict[str, subprocess.Popen[str]] = {}
        self._files: list[IO[str]] = []
        source = str(Path(__file__).resolve().parents[2])
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(random.choice(_DOMAINS) if domain is None else domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(logs),
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")])),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            "OMP_WAIT_POLICY": "passive",
        }

    def __enter__(self) -> Processes:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._children):
            self.stop(name)
        for file in self._files:
            file.close()

    def start(
        self, name: str, module: str, arguments: Sequence[str], piped: bool = False
    ) -> subprocess.Popen[str]:
        """Start a node: a module, or `lla_fusion_ros.ros NAME`.

        Its output goes to a log, standard output to us where `piped`.
        """
        log = (self.logs / f"{name}.log").open("w")
        self._files.append(log)
        child = subprocess.Popen(
            [sys.executable, "-m", *module.split(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else log,
            stderr=log,
            env=self.environment,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us alone; we end the children in order
        )
        self._children[name] = child
        return child

    def check(self, *names: str) -> None:
        """Raise, with the place of its log, where one of these has ended."""
        for name in names:
            code = self._children[name].poll()
            if code is not None:
                log = self.logs / f"{name}.log"
                last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
                raise DemoError(f"the {name} ended early (exit code {code}): {last} (log: {log})")

    def stop(self, name: str) -> None:
        child = self._children[name]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if child.poll() is None:
                child.send_signal(number)
                deadline = time.monotonic() + _PATIENCE
                while child.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
