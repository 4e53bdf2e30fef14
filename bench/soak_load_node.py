"""`soak_load_node`: the cameras of `make soak`: the load of the bench for as long as wanted.

Every line of standard output is a JSON object: one per interval, and at the end the counters that the node
under test tells on /diagnostics, before and after.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException

from bench.load_node import LoadNode, recorded
from lla_fusion_ros.bags.types import Message


class SoakLoad(LoadNode):
    """Sends as LoadNode does, and forgets what it has told."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages)
        self.sent_total = self.answered_total = 0

    def soak(self, seconds: float, every: float) -> None:
        """Send for so long, and tell about every interval."""
        begun = time.monotonic()
        told = 0

        def tell() -> None:
            nonlocal told
            elapsed = time.monotonic() - begun
            if elapsed >= (told + 1) * every:
                told += 1
                _say(self._interval(elapsed))

        self.play(seconds, tell)
        self.wait_for_answers()
        _say(self._interval(time.monotonic() - begun))

    def _interval(self, elapsed: float) -> dict[str, float]:
        """What came since the last interval; frames without an answer yet are kept for the next."""
        latency = np.array(list(self.latency.values()) or [np.nan])
        answered = len(self.latency)
        for stamp in self.latency:
            self.sent.remove(stamp)
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


def _say(line: dict) -> None:
    print(json.dumps(line), flush=True)


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak_load_node", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--warm-up", type=float, default=5.0)
    options = parser.parse_args(args)
    rclpy.init()
    try:
        node = SoakLoad(recorded(options.bag))
        node.wait_for_listener()
        node.play(options.warm_up)
        node.wait_for_answers()
        before = node.counters()
        node.soak(options.seconds, options.every)
        _say({"before": before, "after": node.counters()})
    except (KeyboardInterrupt, ExternalShutdownException):
        return 130
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
