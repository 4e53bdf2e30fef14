"""`load_node`: the cameras of the benchmark: plays a bag as if it happened now and times the answers.

Every message gets the present time as its stamp, so that the age of a stamp is the latency. The last line of
standard output is the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.wire import contract
from lla_fusion_ros.wire.cdr import NANOSECONDS, CdrReader

_QOS = QoSProfile(depth=50)
_STAMP_AT = 4  # bytes: after the CDR header
_PATIENCE = 180.0  # seconds for the node under test to appear and to answer
_GRACE = 3.0  # seconds for the last answers


class LoadNode(Node):
    """Publishes recorded frames with fresh stamps and takes the answers."""

    def __init__(self, messages: Sequence[Message], rate: float) -> None:
        super().__init__("load_node")
        self._messages = messages
        self._rate = rate
        self.topics = {message.topic: message.type for message in messages}
        types = {contract.COMPRESSED_IMAGE: CompressedImage, contract.DETECTIONS: Detection2DArray}
        self._publishers_by_topic = {
            topic: self.create_publisher(types[kind], topic, _QOS) for topic, kind in self.topics.items()
        }
        self.create_subscription(Detection2DArray, contract.FUSED_CLASSES, self._on_answer, _QOS, raw=True)
        self._spinner = SingleThreadedExecutor()
        self._spinner.add_node(self)
        self.sent: dict[int, None] = {}  # stamps of frames
        self.latency: dict[int, float] = {}  # milliseconds by stamp

    def wait_for_listener(self) -> None:
        """Until the node under test listens to every topic and its answers would reach us."""
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            heard = all(p.get_subscription_count() for p in self._publishers_by_topic.values())
            if heard and self.count_publishers(contract.FUSED_CLASSES):
                return
            self._spinner.spin_once(timeout_sec=0.01)
        raise SystemExit("load_node: nobody listens to the cameras")

    def play(self, seconds: float) -> None:
        """Send the bag over and over for so long."""
        self.sent.clear()
        self.latency.clear()
        begun = time.monotonic()
        for due, message in self._schedule():
            if due > seconds:
                break
            while (left := begun + due - time.monotonic()) > 0:
                self._spinner.spin_once(timeout_sec=left)
            self._send(message)

    def wait_for_answers(self) -> None:
        give_up = time.monotonic() + _GRACE
        while len(self.latency) < len(self.sent) and time.monotonic() < give_up:
            self._spinner.spin_once(timeout_sec=0.02)

    def _schedule(self) -> Iterator[tuple[float, Message]]:
        """Seconds after the beginning at which each message is due; the bag again and again."""
        first, last = self._messages[0].time, self._messages[-1].time
        frames = len({message.time for message in self._messages})
        length = (last - first) * frames / max(frames - 1, 1)
        turn = 0
        while True:
            self._stamps: dict[tuple[str, int], int] = {}
            for message in self._messages:
                yield (message.time - first + turn * length) / 1e9 / self._rate, message
            turn += 1

    def _send(self, message: Message) -> None:
        """The image of a frame comes first and gives the frame its stamp, different from every other."""
        camera = message.topic.strip("/").partition("/")[0]
        stamp = self._stamps.setdefault((camera, message.time), time.time_ns())
        if message.type == contract.DETECTIONS:
            self.sent[stamp] = None
        data = bytearray(message.data)
        struct.pack_into("<iI", data, _STAMP_AT, *divmod(stamp, NANOSECONDS))
        self._publishers_by_topic[message.topic].publish(bytes(data))

    def _on_answer(self, raw: bytes) -> None:
        now = time.time_ns()
        stamp = CdrReader(raw).header().stamp
        if stamp in self.sent:
            self.latency[stamp] = (now - stamp) / 1e6


def recorded(path: Path, cameras: Sequence[str]) -> list[Message]:
    """The images and detections of these cameras in a bag."""
    with Bag(path) as bag:
        topics = {
            f"/{make(camera)}"
            for camera in cameras
            for make in (contract.compressed_topic, contract.detections_topic)
        }
        return list(bag.messages(topics))


def _cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="load_node", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--cameras", nargs="+", required=True)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=1.5)
    parser.add_argument("--pid", type=int, required=True, help="the process whose CPU time counts")
    options = parser.parse_args(args)
    rclpy.init()
    node = LoadNode(recorded(options.bag, options.cameras), options.rate)
    node.wait_for_listener()
    node.play(options.warm_up)
    node.wait_for_answers()
    cpu, begun = _cpu_seconds(options.pid), time.monotonic()
    node.play(options.seconds)
    node.wait_for_answers()
    print(json.dumps(_result(node, _cpu_seconds(options.pid) - cpu, time.monotonic() - begun)), flush=True)
    rclpy.try_shutdown()
    return 0


def _result(node: LoadNode, cpu: float, seconds: float) -> dict[str, float]:
    answered = np.array(list(node.latency.values()) or [np.nan])
    middle, high = np.percentile(answered, [50, 95])
    return {
        "sent": len(node.sent),
        "answered": len(node.latency),
        "p50_ms": round(float(middle), 2),
        "p95_ms": round(float(high), 2),
        "cpu_s": round(cpu, 3),
        "seconds": round(seconds, 3),
    }


if __name__ == "__main__":
    sys.exit(main())
