"""Subscriptions that hand over raw bytes, and adapt to the QoS that publishers offer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy

OnBytes = Callable[[bytes], None]


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
        self._downgrade: dict[str, tuple[type, OnBytes]] = {}

    def subscribe(self, message_type: type, topic: str, on_bytes: OnBytes) -> None:
        """Receive a topic; nothing happens where that is so already."""
        if topic not in self._subscriptions:
            self._subscribe(message_type, topic, on_bytes, self._reliability)

    def subscribe_latched(self, message_type: type, topic: str, on_bytes: OnBytes) -> None:
        """Receive a topic whose last message is kept for those who come late."""
        qos = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        self._subscriptions[topic] = self._node.create_subscription(
            message_type, topic, on_bytes, qos, raw=True
        )

    def unsubscribe(self, topic: str) -> None:
        subscription = self._subscriptions.pop(topic, None)
        if subscription is not None:
            self._node.destroy_subscription(subscription)

    def has_publisher(self, topic: str) -> bool:
        """Whether anybody sends on a subscribed topic."""
        subscription = self._subscriptions.get(topic)
        return subscription is not None and subscription.get_publisher_count() > 0

    def close(self) -> None:
        """Receive nothing any more."""
        self._downgrade.clear()
        for topic in list(self._subscriptions):
            self.unsubscribe(topic)

    def adapt(self) -> None:
        """Ask for best effort where a publisher turned out to offer no more; call it now and then."""
        while self._downgrade:
            topic, (message_type, on_bytes) = self._downgrade.popitem()
            self.unsubscribe(topic)
            self._subscribe(message_type, topic, on_bytes, ReliabilityPolicy.BEST_EFFORT)
            self._node.get_logger().info(f"{topic}: the publisher is best effort, so is the subscription now")

    def _subscribe(
        self, message_type: type, topic: str, on_bytes: OnBytes, reliability: ReliabilityPolicy
    ) -> None:
        events = None
        if self._auto and reliability == ReliabilityPolicy.RELIABLE:
            # not from inside the event: the subscription it belongs to has to be replaced
            note = partial(self._note_incompatible, topic, message_type, on_bytes)
            events = SubscriptionEventCallbacks(incompatible_qos=note)
        self._subscriptions[topic] = self._node.create_subscription(
            message_type,
            topic,
            on_bytes,
            QoSProfile(depth=self._depth, reliability=reliability),
            event_callbacks=events,
            raw=True,
        )

    def _note_incompatible(self, topic: str, message_type: type, on_bytes: OnBytes, event: Any) -> None:
        if event.last_policy_kind == QoSPolicyKind.RELIABILITY:
            self._downgrade[topic] = (message_type, on_bytes)
