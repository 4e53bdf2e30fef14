"""`bag_player`: plays a rosbag2 file onto the graph with /clock, for machines without rosbag2."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from lla_fusion_ros.bags.player import Keys, PlayClock, PlayOptions, latched_before, rounds
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.types import Topic
from lla_fusion_ros.ros.process_life import HALF_MADE, Ending, begin, own_arguments, quiet_end
from lla_fusion_ros.types.errors import BagError, InputError, LlaFusionError
from lla_fusion_ros.types.printable import printable

_EXAMPLE = """example:
  bag_player drive/ --rate 2 --loop
  bag_player drive/ --topics /left/image /left/detections --ros-args --remap /left/image:=/front/image
"""
_ACK_TIMEOUT = Duration(seconds=5)


class BagPlayer(Node):
    """Publishes the messages of an open bag, as the bytes that were recorded, when they are due."""

    def __init__(self, bag: Bag, options: argparse.Namespace) -> None:
        super().__init__("bag_player")
        self._bag = bag
        self._options = options
        self._play_options = PlayOptions(options.rate, options.start, options.loop)
        self._play_clock = PlayClock(options.rate)
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if options.clock else None
        self._tick = 1.0 / (options.clock or 20.0)
        self._publishers_by_topic = self._make_publishers(_overrides(options.qos_overrides))
        self._spinner = SingleThreadedExecutor()
        self._spinner.add_node(self)

    def play(self) -> None:
        """Play to the end, or for ever when looping."""
        self._wait_for_subscribers(self._options.wait)
        summary = self._bag.summary
        self.get_logger().info(
            f"playing {len(self._publishers_by_topic)} topics of '{self._bag.path}', "
            f"{summary.duration:.1f} s at rate {self._options.rate:g}"
        )
        sent = 0
        with Keys() as keys:
            if keys.active:
                self.get_logger().info("space pauses and goes on")
            for start, messages in rounds(self._bag, self._publishers_by_topic.keys(), self._play_options):
                for message in latched_before(self._bag, start):
                    if message.topic in self._publishers_by_topic:
                        self._publishers_by_topic[message.topic].publish(message.data)
                self._play_clock.restart(start)
                for message in messages:
                    self._wait_until(message.time, keys)
                    self._publishers_by_topic[message.topic].publish(message.data)
                    sent += 1
        self._publish_clock()
        for publisher in self._publishers_by_topic.values():
            publisher.wait_for_all_acked(_ACK_TIMEOUT)
        self.get_logger().info(f"end of bag: {sent} messages published")

    def close(self) -> None:
        """Free the executor, which must not outlive ROS, and the node."""
        self._spinner.shutdown()
        self.destroy_node()

    def _make_publishers(self, overrides: dict[str, dict[str, Any]]) -> dict[str, Publisher]:
        wanted = set(self._options.topics or ())
        known = {topic.name for topic in self._bag.summary.topics}
        if missing := sorted(wanted - known):
            raise BagError(f"the bag has no topic {', '.join(missing)}; it has {', '.join(sorted(known))}")
        publishers = {}
        for topic in self._bag.summary.topics:
            if (wanted and topic.name not in wanted) or not topic.count or topic.name == "/clock":
                continue
            message_type = _message_type(topic.type)
            if message_type is None:
                left_out = f"{topic.name} is left out: {topic.type} is not installed here"
                self.get_logger().warning(printable(left_out))
                continue
            qos = _qos(topic, overrides.get(topic.name, {}))
            publishers[topic.name] = self.create_publisher(message_type, topic.name, qos)
        if not publishers:
            raise BagError(f"nothing in '{self._bag.path}' can be played: no message type is installed here")
        return publishers

    def _wait_for_subscribers(self, seconds: float) -> None:
        """Messages published before the subscribers are found would be lost."""
        give_up = self.get_clock().now() + Duration(seconds=seconds)
        while self.get_clock().now() < give_up:
            if all(publisher.get_subscription_count() for publisher in self._publishers_by_topic.values()):
                return
            self._spinner.spin_once(timeout_sec=0.05)
        deaf = [
            name
            for name, publisher in self._publishers_by_topic.items()
            if not publisher.get_subscription_count()
        ]
        if seconds and deaf:
            self.get_logger().warning(f"nobody subscribes to {', '.join(deaf)}")

    def _wait_until(self, recorded: int, keys: Keys) -> None:
        """Let the clock run until a recorded time has come; the keyboard may hold it."""
        while True:
            if keys.pressed() == " ":
                self._play_clock.toggle()
                self.get_logger().info("paused" if self._play_clock.paused else "playing")
            left = self._play_clock.until(recorded)
            if left == 0.0:
                break
            # it may have come meanwhile: the clock must not show more than the message's own time, then that
            self._publish_clock(min(self._play_clock.time(), recorded))
            self._spinner.spin_once(timeout_sec=self._tick if left is None else min(left, self._tick))
        self._publish_clock(recorded)

    def _publish_clock(self, recorded: int | None = None) -> None:
        if self._clock_publisher is not None:
            seconds, nanoseconds = divmod(self._play_clock.time() if recorded is None else recorded, 10**9)
            self._clock_publisher.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))


def _message_type(name: str) -> type | None:
    """The class of a message type, or None where its package is not installed."""
    package, _, message = name.partition("/msg/")
    try:
        found: type = getattr(importlib.import_module(f"{package}.msg"), message)
        return found
    except (ImportError, AttributeError, ValueError):
        return None


def _qos(topic: Topic, override: dict[str, Any]) -> QoSProfile:
    """As recorded, changed by what the user says; the names are those of `ros2 bag play`."""
    latched = topic.latched
    try:
        return QoSProfile(
            history=HistoryPolicy.get_from_short_key(override.get("history", "keep_last")),
            depth=int(override.get("depth", 1 if latched else 50)),
            reliability=ReliabilityPolicy.get_from_short_key(
                override.get("reliability", "reliable" if topic.reliable else "best_effort")
            ),
            durability=DurabilityPolicy.get_from_short_key(
                override.get("durability", "transient_local" if latched else "volatile")
            ),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"QoS override of {topic.name} is not understood: {error}") from error


def _overrides(path: str | None) -> dict[str, dict[str, Any]]:
    if path is None:
        return {}
    try:
        document = yaml.safe_load(Path(path).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"QoS overrides '{path}' cannot be read: {error}") from error
    if not isinstance(document, dict) or not all(isinstance(value, dict) for value in document.values()):
        raise InputError(f"QoS overrides '{path}': expected a mapping of topics to QoS settings")
    return document


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bag_player", description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("bag", help="bag folder, .mcap or .db3 file; split, compressed or cut off is fine")
    parser.add_argument("--rate", type=float, default=1.0, help="recorded seconds per second (default 1)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end")
    parser.add_argument("--start", type=float, default=0.0, metavar="S", help="skip the first S seconds")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="play only these")
    parser.add_argument("--clock", type=float, default=100.0, metavar="HZ", help="rate of /clock; 0: none")
    parser.add_argument("--qos-overrides", metavar="YAML", help="file as for `ros2 bag play`")
    parser.add_argument("--wait", type=float, default=0.0, metavar="S", help="wait so long for subscribers")
    return parser.parse_args(arguments)


def main(args: Sequence[str] | None = None) -> int:
    arguments = sys.argv if args is None else ["bag_player", *args]
    try:
        options = _parse(own_arguments(arguments))
        begin(arguments)
    except LlaFusionError as error:
        print(f"bag_player: {printable(str(error))}", file=sys.stderr)
        return 1
    ending, player, code = Ending(), None, 0
    try:
        with quiet_end(), Bag(options.bag) as bag:
            player = BagPlayer(bag, options)
            for note in bag.notes:
                player.get_logger().warning(printable(note))
            player.play()
    except LlaFusionError as error:
        print(f"bag_player: {printable(str(error))}", file=sys.stderr)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    ending.finish(code, HALF_MADE if player is None else ("the player", player.close))
