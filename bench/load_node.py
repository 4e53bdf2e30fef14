"""`load_node`: the cameras of bench and soak: plays a bag as if it happened now and times the answers.

Every message gets the present time as its stamp, so that the age of a stamp is the latency. Nodes under test
live in namespaces of their own and take turns, so that all of them see the same machine. Every line of
standard output is a record of one turn as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import NANOSECONDS, CdrReader
from lla_fusion_ros.messages.status import parse_diagnostics
from lla_fusion_ros.ros.publishers import TYPES

_QOS = QoSProfile(depth=50)
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_STAMP_AT = {contract.TRANSFORMS_TYPE: 8}  # bytes of the message before its first stamp; 4 for all others
_PATIENCE = 180.0  # seconds for the node under test to appear and to answer, and for /diagnostics
_GRACE = 2.0  # seconds without an answer after which no more are expected
_CAMERA = ": camera "


class LoadNode(Node):
    """Publishes recorded frames with fresh stamps below a namespace and takes the answers."""

    def __init__(self, messages: Sequence[Message], namespace: str = "") -> None:
        super().__init__("load_node", namespace=namespace)
        self._messages = [message for message in messages if not _is_latched(message.topic)]
        self._cameras = {_camera_of(message.topic) for message in messages}  # others' are none of ours
        self._prefix = f"/{namespace}" if namespace else ""
        types = {**TYPES, contract.TRANSFORMS_TYPE: TFMessage}
        self._sends: dict[str, Any] = {}
        for topic, kind in {message.topic: message.type for message in messages}.items():
            qos = _LATCHED if _is_latched(topic) else _QOS
            name = topic if kind == contract.TRANSFORMS_TYPE else self._prefix + topic
            self._sends[topic] = self.create_publisher(types[kind], name, qos)
        for message in messages:
            if _is_latched(message.topic):
                self._sends[message.topic].publish(message.data)
        answers = f"{self._prefix}/{contract.FUSED_CLASSES}"
        self.create_subscription(Detection2DArray, answers, self._on_answer, _QOS, raw=True)
        self.create_subscription(
            DiagnosticArray, contract.NODE_DIAGNOSTICS, self._on_diagnostics, 10, raw=True
        )
        self.spinner = SingleThreadedExecutor()
        self.spinner.add_node(self)
        self.speed, self.turns = 1.0, 0  # of the bag; how often it was begun
        self.sent: set[int] = set()  # stamps of frames
        self.latency: dict[int, float] = {}  # milliseconds by stamp
        self._answered_at = self._told_at = 0.0
        self._counters: dict[str, Counter[str]] = {}
        self.last_answer, self.joins = b"", 0

    def wait_for_listener(self) -> None:
        """Until the node under test listens to every topic and its answers would reach us."""
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            heard = all(each.get_subscription_count() for each in self._sends.values())
            if heard and self.count_publishers(f"{self._prefix}/{contract.FUSED_CLASSES}"):
                return
            self.spinner.spin_once(timeout_sec=0.01)
        raise SystemExit("load_node: nobody listens to the cameras")

    def play(self, seconds: float, after_each: Callable[[], None] = lambda: None) -> None:
        """Send the bag over and over for so long."""
        self.sent.clear()
        self.latency.clear()
        begun = time.monotonic()
        for due, message in self._schedule():
            if due >= seconds:
                break
            while (left := begun + due - time.monotonic()) > 0:
                self.spinner.spin_once(timeout_sec=left)
            self._send(message)
            after_each()
        self._answered_at = time.monotonic()

    def wait_for_answers(self) -> None:
        while len(self.latency) < len(self.sent) and time.monotonic() < self._answered_at + _GRACE:
            self.spinner.spin_once(timeout_sec=0.02)

    def counters(self) -> dict[str, Counter[str]]:
        """What the node under test has counted up to now, by camera."""
        self._counters, asked, give_up = {}, time.time_ns(), time.monotonic() + _PATIENCE
        while not self._counters or self._told_at <= asked:
            if time.monotonic() > give_up:
                raise SystemExit("load_node: no /diagnostics comes")
            self.spinner.spin_once(timeout_sec=0.05)
        return dict(self._counters)

    def _schedule(self) -> Iterator[tuple[float, Message]]:
        """Seconds after the beginning at which each message is due; the bag again and again."""
        first, last = self._messages[0].time, self._messages[-1].time
        moments = len({message.time for message in self._messages})
        length = (last - first) * moments / max(moments - 1, 1)
        for turn in itertools.count():
            self.turns += 1
            self._stamps: dict[tuple[str, int], int] = {}
            for message in self._messages:
                yield (message.time - first + turn * length) / 1e9 / self.speed, message

    def data_of(self, message: Message) -> bytes:
        """What is sent, but for its stamp."""
        return message.data

    def _send(self, message: Message) -> None:
        """The first message of a frame gives the frame its stamp, different from every other."""
        camera = _camera_of(message.topic)
        stamp = self._stamps.setdefault((camera, message.time), time.time_ns())
        if message.type == contract.DETECTIONS:
            self.sent.add(stamp)
        at, fresh = _STAMP_AT.get(message.type, 4), struct.pack("<iI", *divmod(stamp, NANOSECONDS))
        old = memoryview(self.data_of(message))  # may be megabytes: copied once
        self._sends[message.topic].publish(b"".join((old[:at], fresh, old[at + len(fresh) :])))

    def _on_answer(self, raw: bytes) -> None:
        now = time.time_ns()
        stamp = CdrReader(raw).header().stamp
        self.last_answer = raw
        if stamp in self.sent:
            self.latency[stamp] = (now - stamp) / 1e6
            self._answered_at = time.monotonic()

    def _on_diagnostics(self, raw: bytes) -> None:
        header, statuses = parse_diagnostics(raw)
        for status in statuses:
            node, is_camera, camera = status.name.partition(_CAMERA)
            if is_camera and camera in self._cameras and f"/{node}".startswith(f"{self._prefix}/"):
                self._told_at = header.stamp
                numbers = {key: int(value) for key, value in status.values.items() if value.isdigit()}
                self._counters[camera] = Counter(numbers)
            elif not is_camera and f"/{node}".startswith(f"{self._prefix}/"):
                self.joins = int(status.values.get("joins", 0))


def _camera_of(topic: str) -> str:
    return topic.strip("/").partition("/")[0]


def _is_latched(topic: str) -> bool:
    return topic == contract.STATIC_TRANSFORMS or topic.endswith("/views/info")


def recorded(path: Path) -> list[Message]:
    """What a bag has of cameras and geometry."""
    with Bag(path) as bag:
        return list(bag.messages())


def turn(node: LoadNode, process: psutil.Process, seconds: float) -> dict[str, Any]:
    """Play for so long; what came back, and the CPU seconds of a process."""
    before = process.cpu_times()
    node.play(seconds)
    node.wait_for_answers()
    after, latency = process.cpu_times(), list(node.latency.values())
    return {
        "sent": len(node.sent),
        "answered": len(latency),
        "latency_ms": [round(each, 2) for each in latency],
        "cpu_s": after.user + after.system - before.user - before.system,
    }


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="load_node", description=__doc__)
    parser.add_argument("bags", type=Path, nargs="+", help="played one after the other")
    parser.add_argument("--nodes", nargs="+", required=True, metavar="NAMESPACE=PID")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(args)
    rclpy.init()
    processes = {name: psutil.Process(int(pid)) for name, pid in (each.split("=") for each in options.nodes)}
    for bag in options.bags:
        messages = recorded(bag)
        nodes = {name: LoadNode(messages, name) for name in processes}
        for node in nodes.values():
            node.wait_for_listener()
            node.play(1.0)  # to warm up
            node.wait_for_answers()
        before = {name: node.counters() for name, node in nodes.items()}
        for number in range(options.rounds):
            for name in list(nodes) if number % 2 else list(nodes)[::-1]:
                found = turn(nodes[name], processes[name], options.seconds)
                print(json.dumps({"bag": str(bag), "node": name, **found}), flush=True)
        for name, node in nodes.items():
            counted = {"before": before[name], "after": node.counters()}
            print(json.dumps({"bag": str(bag), "node": name, **counted}), flush=True)
            node.destroy_node()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
