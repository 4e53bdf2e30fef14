"""What ROS 2 distributions do differently, from Humble to Lyrical; the rest uses what all of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks

    HAS_MESSAGE_INFO = True
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

    HAS_MESSAGE_INFO = False

__all__ = ["LACKING", "NO_EVENTS", "SubscriptionEventCallbacks", "publisher_count", "with_info"]

# Of a publisher. rclpy's executor adds every event of every topic to a list, in Python, before each message:
# with 16 cameras that takes longer than the networks. What a reader asks for that we do not offer, its own
# log says.
NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)

# What this distribution lacks, for the log; empty where nothing is missing.
LACKING = (
    "" if HAS_MESSAGE_INFO else "this ROS 2 numbers no messages: what DDS loses on the way is not counted"
)


def with_info(callback: Callable[[bytes, Mapping[str, Any]], None]) -> Callable[..., None]:
    """A callback as subscriptions take it; where they tell nothing about a message, the mapping is empty."""
    if HAS_MESSAGE_INFO:
        return callback
    return lambda raw: callback(raw, {})


def publisher_count(node: Node, subscription: Subscription) -> int:
    """How many publish to a subscription."""
    if hasattr(subscription, "get_publisher_count"):
        return int(subscription.get_publisher_count())
    return int(node.count_publishers(subscription.topic_name))
