"""What DDS lost on the way, told from the numbers of the messages that came."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from std_msgs.msg import Empty

from lla_fusion_ros.ros.subscriptions import Gaps, Inputs

SENDER = """
import sys
from contextlib import suppress
import rclpy
from rclpy.executors import ExternalShutdownException
from std_msgs.msg import Empty

rclpy.init()
node = rclpy.create_node("sender")
publisher = node.create_publisher(Empty, "topic", 1000)
for _ in range(int(sys.argv[1])):
    publisher.publish(Empty())
node.create_timer(1 / float(sys.argv[2]), lambda: publisher.publish(Empty()))
print("sends", flush=True)
with suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
"""


def info(number: int | None, sender: str = "", received: int = 0) -> dict:
    told = {"publication_sequence_number": number, "received_timestamp": received}
    return {**told, "publisher_gid": {"data": sender.encode()}} if sender else told


def missing(numbers: list[int | None], publishers: int = 1) -> list[int]:
    gaps = Gaps()
    return [gaps.before(info(number), publishers, now) for now, number in enumerate(numbers)]


def test_a_gap_in_the_numbers_is_a_loss():
    assert missing([7, 8, 11, 12, 20]) == [0, 0, 2, 0, 7]


def test_a_publisher_that_starts_again_is_no_loss():
    assert missing([98, 99, 1, 2, 4]) == [0, 0, 0, 0, 1]


def test_numbers_of_two_publishers_and_middleware_without_numbers_say_nothing():
    assert missing([5, 90, 6, 91], publishers=2) == [0, 0, 0, 0]
    assert missing([None, None]) == [0, 0]


@pytest.mark.parametrize("waiting", [(), ((191, 38),), ((9, 37), (191, 38), (10, 39))])
def test_when_one_of_two_publishers_leaves_nothing_is_missing_of_the_other(waiting):
    gaps = Gaps()
    for now, number in enumerate([7, 189, 8, 190]):
        gaps.before(info(number, received=now), 2, now)
    # what waits was received before it was known that one had left
    assert [gaps.before(info(number, received=then), 1, 40) for number, then in waiting] == [0] * len(waiting)
    after = [(11, 41), (12, 42), (15, 43)]
    found = [gaps.before(info(number, received=now), 1, now) for number, now in after]
    assert found == [0, 0, 2]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_each_of_several_named_senders_counts_for_itself(sent):
    gaps, numbers = Gaps(), Counter({"a": 10, "b": 500, "c": 0})
    last: dict[str, int] = {}
    for now, (sender, arrives) in enumerate(sent, 1):
        numbers[sender] += 1
        if arrives:
            lost = numbers[sender] - last.get(sender, numbers[sender] - 1) - 1
            assert gaps.before(info(numbers[sender], sender, now), 3, now) == lost
            last[sender] = numbers[sender]


def test_numbers_that_go_back_again_and_again_are_those_of_two_publishers():
    def mixed(numbers: list[int], publishers: int) -> bool:
        gaps = Gaps()
        for now, number in enumerate(numbers):
            gaps.before(info(number), publishers, now)
        return gaps.mixed

    assert mixed([5, 90, 6, 91, 7, 92, 8], publishers=2)
    assert mixed([5, 5, 6, 6, 7, 7], publishers=2)
    assert not mixed([97, 98, 1, 2, 3, 4], publishers=2)  # one died and is still known, one has begun
    assert not mixed([5, 4, 3, 2, 1], publishers=1)


def test_a_publisher_that_leaves_another_behind_is_no_loss(ros_graph, ros_process):
    slow = ros_process(SENDER, "500", "10", name="slow")
    slow.wait_for_log("sends")
    fast = ros_process(SENDER, "0", "200", name="fast")
    fast.wait_for_log("sends")
    node = ros_graph.node("listener")
    inputs, lost, came = Inputs(node, "reliable", 1000), [], []
    inputs.subscribe(
        Empty, "topic", lambda raw, received: came.append(node.count_publishers("topic")), lost.append
    )
    ros_graph.spin_until(lambda: came.count(2) > 50, what="messages of both")
    assert fast.stop() == 0, fast.log
    ros_graph.spin_until(lambda: came[-5:] == [1] * 5, what="messages of one")
    assert not lost
    inputs.close()
