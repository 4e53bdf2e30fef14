"""`soak_load_node`: the cameras of `make soak`: the load of the bench for as long as wanted.

Every line of standard output is a JSON object: one per interval, and at the end the counters that the node
under test tells on /diagnostics, before and after.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import ExternalShutdownException

from bench.load_node import LoadNode, recorded
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.wire import contract
from lla_fusion_ros.wire.status import parse_diagnostics

_CAMERA = ": camera "
_PATIENCE = 60.0  # seconds for /diagnostics to come


class SoakLoad(LoadNode):
    """Sends as LoadNode does, forgets what it has told, and hears /diagnostics."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages, rate=1.0)
        self.sent_total = self.answered_total = 0
        self._told_at = 0
        self._counters: dict[str, Counter[str]] = {}
        self.create_subscription(
            DiagnosticArray, contract.NODE_DIAGNOSTICS, self._on_diagnostics, 10, raw=True
        )

    def soak(self, seconds: float, every: float) -> None:
        """Send for so long, and tell about every interval."""
        begun = time.monotonic()
        tell_at = begun + every
        for due, message in self._schedule():
            if due > seconds:
                break
            while (left := begun + due - time.monotonic()) > 0:
                self._spinner.spin_once(timeout_sec=left)
            self._send(message)
            if time.monotonic() >= tell_at:
                tell_at += every
                _say(self._interval(time.monotonic() - begun))
        self.wait_for_answers()
        _say(self._interval(time.monotonic() - begun))

    def counters(self) -> dict[str, Counter[str]]:
        """What the node under test has counted up to now, by camera."""
        self._counters, asked, give_up = {}, time.time_ns(), time.monotonic() + _PATIENCE
        while not self._counters or self._told_at <= asked:
            if time.monotonic() > give_up:
                raise SystemExit("soak_load_node: no /diagnostics comes")
            self._spinner.spin_once(timeout_sec=0.05)
        return dict(self._counters)

    def _interval(self, elapsed: float) -> dict[str, float]:
        """What came since the last interval; frames without an answer yet are kept for the next."""
        latency = np.array(list(self.latency.values()) or [np.nan])
        answered = len(self.latency)
        for stamp in self.latency:
            del self.sent[stamp]
        self.latency.clear()
        self.answered_total += answered
        self.sent_total = self.answered_total + len(self.sent)
        middle, high = np.percentile(latency, [50, 95])
        return {
            "seconds": round(elapsed, 2),
            "sent": self.sent_total,
            "answered": self.answered_total,
            "p50_ms": round(float(middle), 2),
            "p95_ms": round(float(high), 2),
            "max_ms": round(float(latency.max()), 2),
        }

    def _on_diagnostics(self, raw: bytes) -> None:
        header, statuses = parse_diagnostics(raw)
        self._told_at = header.stamp
        for status in statuses:
            _, is_camera, camera = status.name.partition(_CAMERA)
            if is_camera:
                numbers = {key: int(value) for key, value in status.values.items() if value.isdigit()}
                self._counters[camera] = Counter(numbers)


def _say(line: dict) -> None:
    print(json.dumps(line), flush=True)


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak_load_node", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--cameras", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--warm-up", type=float, default=5.0)
    options = parser.parse_args(args)
    rclpy.init()
    try:
        node = SoakLoad(recorded(options.bag, options.cameras))
        node.wait_for_listener()
        node.play(options.warm_up)
        node.wait_for_answers()
        before = node.counters()
        node.sent.clear()
        node.latency.clear()
        node.soak(options.seconds, options.every)
        _say({"before": before, "after": node.counters()})
    except (KeyboardInterrupt, ExternalShutdownException):
        return 130
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
