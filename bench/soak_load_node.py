"""`soak_load_node`: the cameras of `make soak`: a bag over and over, as fast as loads the node as wanted.

Every line of standard output is a JSON object: the speed that was found, one per interval, and at the end the
counters that the node under test tells on /diagnostics, before and after.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import rclpy
from rclpy.executors import ExternalShutdownException

from bench.load_node import LoadNode, recorded
from bench.scene import counted_up
from bench.soak_result import cpu_seconds, faster
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.messages.detections import parse_detections

_TRIES, _TRY = 5, 12.0  # seconds in which the speed is found


class SoakLoad(LoadNode):
    """Sends as LoadNode does, and forgets what it has told."""

    def __init__(self, messages: Sequence[Message], objects: int) -> None:
        super().__init__(messages)
        self._objects = objects  # by which ids count up in every turn of the bag
        self.sent_total = self.answered_total = 0

    def data_of(self, message: Message) -> bytes:
        if not message.topic.endswith("/views"):
            return message.data
        return counted_up(message.data, self.turns * self._objects)

    def find_speed(self, process: psutil.Process, load: float) -> None:
        """Play for a while, and change the speed until the node takes a share `load` of what it can get."""
        for _ in range(_TRIES):
            before = cpu_seconds(process)
            self.play(_TRY)
            own, others = ((now - before[key]) / _TRY for key, now in cpu_seconds(process).items())
            self.wait_for_answers()
            self.speed *= faster(own, others, len(self.latency) / len(self.sent), load)

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
        ids = parse_detections(self.last_answer).ids if self.last_answer else ()
        return {
            "seconds": round(elapsed, 2),
            "sent": self.sent_total,
            "answered": self.answered_total,
            "p50_ms": round(float(middle), 2),
            "p95_ms": round(float(high), 2),
            "highest_id": max((int(name.rpartition("/")[2]) for name in ids), default=0),
        }


def _say(line: dict) -> None:
    print(json.dumps(line), flush=True)


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak_load_node", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--node", type=int, required=True, help="process id of the node under test")
    parser.add_argument("--load", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, required=True)
    parser.add_argument("--objects", type=int, required=True, help="by which ids of views count up")
    options = parser.parse_args(args)
    rclpy.init()
    try:
        node = SoakLoad(recorded(options.bag), options.objects)
        node.wait_for_listener()
        node.find_speed(psutil.Process(options.node), options.load)
        before = node.counters()
        _say({"speed": round(node.speed, 3)})
        node.soak(options.seconds, options.every)
        _say({"before": before, "after": node.counters(), "joins": node.joins})
    except (KeyboardInterrupt, ExternalShutdownException):
        return 130
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
