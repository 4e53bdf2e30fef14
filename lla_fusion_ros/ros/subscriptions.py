"""Subscriptions that hand over raw bytes, and adapt to the QoS that publishers offer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy

from lla_fusion_ros.ros.compat import SubscriptionEventCallbacks, publisher_count, with_info

OnBytes = Callable[[bytes, int], None]  # the message, and when DDS got it in ns of the system's clock
OnLost = Callable[[int], None]

WENT_BACK = 3  # times that message numbers go back before it is said that two publishers send


class Gaps:
    """Counts what DDS lost on the way, by the numbers that a publisher gives its messages.

    A full history loses messages without an event. Each sender counts for itself; where messages do not name
    theirs (rclpy before Kilted), only a lone publisher's numbers mean something. Counting begins anew when
    the number of publishers changes, with messages that come after that: those that waited are of either
    side. A publisher that begins again begins at 1, which is no gap. Numbers that go back again and again
    while the graph knows two publishers are those of two that send; one that died is known for a while.
    """

    def __init__(self) -> None:
        self._last: int | None = None  # number of anybody
        self._numbers: dict[str, int] = {}  # the last one, by sender
        self._publishers = 0
        self._since = 0  # system time of the last change, in ns
        self._went_back = 0

    @property
    def mixed(self) -> bool:
        """Whether messages of two publishers come."""
        return self._went_back >= WENT_BACK

    def before(self, info: Mapping[str, Any], publishers: int, now: int) -> int:
        """How many messages are missing before the one of `info`; 0 where the middleware numbers none."""
        number: int | None = info.get("publication_sequence_number")
        sender = str(info.get("publisher_gid") or "")
        last, self._last = self._last, number
        if publishers != self._publishers:
            self._since = now if self._publishers else self._since
            self._publishers = publishers
            self._numbers.clear()
        if number is None:
            return 0
        if publishers < 2:
            self._went_back = 0
        elif last is not None:
            self._went_back += number <= last
        if (publishers != 1 and not sender) or (info.get("received_timestamp") or now) < self._since:
            return 0
        missing = number - self._numbers.get(sender, number) - 1
        self._numbers[sender] = number
        return max(missing, 0)


class Inputs:
    """All input subscriptions of a node.

    Messages come as bytes (`raw`): building Python objects of images and detections would cost more than
    the networks.
    """

    def __init__(self, node: Node, reliability: str, depth: int) -> None:
        self._node = node
        self._auto = reliability == "auto"
        self._reliability = (
            ReliabilityPolicy.BEST_EFFORT if reliability == "best_effort" else ReliabilityPolicy.RELIABLE
        )
        self._depth = depth
        self._subscriptions: dict[str, Any] = {}
        self._gaps: dict[str, Gaps] = {}
        self._downgrade: dict[str, tuple[type, str, OnBytes, OnLost]] = {}

    def subscribe(
        self, message_type: type, topic: str, on_bytes: OnBytes, on_lost: OnLost, key: str = ""
    ) -> None:
        """Receive a topic; nothing happens where that is so already. `on_lost` gets the number of messages
        that DDS lost before the one that comes next. `key` is its name here, where it is not the topic."""
        key = key or topic
        if key not in self._subscriptions:
            self._subscribe(message_type, topic, on_bytes, on_lost, self._reliability, key)

    def subscribe_latched(
        self, message_type: type, topic: str, on_bytes: Callable[[bytes], None], depth: int = 1
    ) -> None:
        """Receive a topic whose last messages are kept for those who come late."""
        qos = QoSProfile(
            depth=depth, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        self._subscriptions[topic] = self._node.create_subscription(
            message_type, topic, on_bytes, qos, raw=True
        )

    def crowded(self) -> dict[str, str]:
        """Topics on which more than one publisher sends, and the nodes that do."""
        crowded = {}
        for key in [key for key, gaps in self._gaps.items() if gaps.mixed]:
            name = self._subscriptions[key].topic_name  # with namespace and remaps
            infos = self._node.get_publishers_info_by_topic(name)
            crowded[name] = ", ".join(sorted(info.node_name for info in infos))
        return crowded

    def unsubscribe(self, key: str) -> None:
        self._gaps.pop(key, None)
        self._downgrade.pop(key, None)
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            self._node.destroy_subscription(subscription)

    def has_publisher(self, key: str) -> bool:
        """Whether anybody sends on a subscribed topic."""
        subscription = self._subscriptions.get(key)
        return subscription is not None and publisher_count(self._node, subscription) > 0

    def close(self) -> None:
        """Receive nothing any more."""
        self._downgrade.clear()
        for topic in list(self._subscriptions):
            self.unsubscribe(topic)

    def adapt(self) -> None:
        """Ask for best effort where a publisher turned out to offer no more; call it now and then."""
        while self._downgrade:
            key, (message_type, topic, on_bytes, on_lost) = self._downgrade.popitem()
            self.unsubscribe(key)
            self._subscribe(message_type, topic, on_bytes, on_lost, ReliabilityPolicy.BEST_EFFORT, key)
            self._node.get_logger().info(f"{topic}: the publisher is best effort, so is the subscription now")

    def _subscribe(
        self,
        message_type: type,
        topic: str,
        on_bytes: OnBytes,
        on_lost: OnLost,
        reliability: ReliabilityPolicy,
        key: str,
    ) -> None:
        events = None
        if self._auto:
            # not from inside the event: the subscription it belongs to has to be replaced
            note = partial(self._note_incompatible, key, message_type, topic, on_bytes, on_lost)
            wanted = note if reliability == ReliabilityPolicy.RELIABLE else None
            events = SubscriptionEventCallbacks(incompatible_qos=wanted, use_default_callbacks=False)
        gaps = self._gaps[key] = Gaps()

        def receive(raw: bytes, info: Mapping[str, Any]) -> None:
            now = time.time_ns()
            if missing := gaps.before(info, publisher_count(self._node, subscription), now):
                on_lost(missing)
            # not when this callback is called: a busy node may take images later than detections
            on_bytes(raw, info.get("received_timestamp") or now)

        subscription = self._node.create_subscription(
            message_type,
            topic,
            with_info(receive),
            QoSProfile(depth=self._depth, reliability=reliability),
            event_callbacks=events,
            raw=True,
        )
        self._subscriptions[key] = subscription

    def _note_incompatible(
        self, key: str, message_type: type, topic: str, on_bytes: OnBytes, on_lost: OnLost, event: Any
    ) -> None:
        if event.last_policy_kind == QoSPolicyKind.RELIABILITY:
            self._downgrade[key] = (message_type, topic, on_bytes, on_lost)
