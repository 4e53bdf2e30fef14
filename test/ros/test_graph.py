"""The first things that have to work on a real ROS 2 graph, between real processes."""

from __future__ import annotations

import json
import signal
import textwrap

import pytest
from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from vision_msgs.msg import Detection2D, Detection2DArray, LabelInfo, ObjectHypothesisWithPose, VisionClass

from support.domains import reserved_domain
from support.interfaces import description_file
from support.processes import ProcessDied
from support.ros import LATCHED


def node_source(body: str) -> str:
    """Source of a process with one node, called `node` in `body`, that spins until Ctrl-C."""
    return f"""
import rclpy
from rclpy.executors import ExternalShutdownException

try:
    rclpy.init()
{textwrap.indent(body, "    ")}
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
finally:
    rclpy.try_shutdown()
"""


ECHO = node_source("""
from vision_msgs.msg import Detection2DArray
node = rclpy.create_node("echo")
publisher = node.create_publisher(Detection2DArray, "back", 10)
node.create_subscription(Detection2DArray, "there", publisher.publish, 10)
""")

LATCHING = node_source("""
from rclpy.qos import DurabilityPolicy, QoSProfile
from vision_msgs.msg import LabelInfo, VisionClass
node = rclpy.create_node("labels")
qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
publisher = node.create_publisher(LabelInfo, "label_info", qos)
classes = [VisionClass(class_id=i, class_name=name) for i, name in enumerate(["stop", "yield", "50 km/h"])]
publisher.publish(LabelInfo(class_map=classes, threshold=0.25))
print("published")
""")

TIMED = node_source("""
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
node = rclpy.create_node("timed")
# Latched, because the timer ticks once only, perhaps before the listener is known.
qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
publisher = node.create_publisher(String, "now", qos)
node.create_timer(1.0, lambda: publisher.publish(String(data=str(node.get_clock().now().nanoseconds))))
""")

RANGED = node_source("""
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
node = rclpy.create_node("ranged")
depth = ParameterDescriptor(integer_range=[IntegerRange(from_value=1, to_value=100)])
node.declare_parameter("depth", 5, depth)
share = ParameterDescriptor(floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1.0)])
node.declare_parameter("share", 0.5, share)
""")


def make_detections() -> Detection2DArray:
    """An array with every field away from its default, and track ids that only survive byte for byte."""
    message = Detection2DArray()
    message.header.frame_id = "camera/left"
    message.header.stamp = Time(sec=1_700_000_000, nanosec=123_456_789)
    for track in ["7", "7 ", "Schild-ä-標識"]:
        detection = Detection2D(id=track, header=message.header)
        detection.bbox.center.position.x, detection.bbox.center.position.y = 12.25, -3.5
        detection.bbox.center.theta = 0.125
        detection.bbox.size_x, detection.bbox.size_y = 40.0, 41.5
        for name, score in [("stop", 0.75), ("yield", 0.25)]:
            result = ObjectHypothesisWithPose()
            result.hypothesis.class_id, result.hypothesis.score = name, score
            result.pose.pose.position.z = 9.0
            result.pose.covariance[35] = 0.5
            detection.results.append(result)
        message.detections.append(detection)
    return message


def test_detections_pass_between_two_processes_intact(ros_process, ros_graph):
    ros_process(ECHO, name="echo")
    node = ros_graph.node()
    received = ros_graph.collect(node, Detection2DArray, "back")
    publisher = node.create_publisher(Detection2DArray, "there", 10)
    ros_graph.wait_for_subscribers(publisher)
    ros_graph.publish_until(publisher, make_detections(), lambda: received, what="the echoed detections")
    assert received[0] == make_detections()


def test_a_latched_label_info_reaches_a_late_joiner(ros_process, ros_graph):
    process = ros_process(LATCHING, name="labels")
    process.wait_for_log("published")
    received = ros_graph.collect(ros_graph.node(), LabelInfo, "label_info", LATCHED)
    ros_graph.spin_until(lambda: received, what="the latched labels")
    assert received[0].class_map[2] == VisionClass(class_id=2, class_name="50 km/h")
    assert received[0].threshold == 0.25


def test_a_simulated_clock_drives_a_nodes_time(ros_process, ros_graph):
    ros_process(TIMED, name="timed", params={"use_sim_time": True})
    node = ros_graph.node()
    told = ros_graph.collect(node, String, "now", LATCHED)
    clock = node.create_publisher(Clock, "/clock", 10)
    for second in [100, 101, 102]:  # the timer of one second fires once in each
        told.clear()
        ros_graph.publish_until(
            clock, Clock(clock=Time(sec=second)), lambda: told, what=f"a tick at {second} s"
        )
        assert [int(message.data) for message in told] == [second * 10**9]


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("depth", 100, True),
        ("depth", 101, False),
        ("depth", 0, False),
        ("share", 1.0, True),
        ("share", 1.5, False),
    ],
)
def test_parameters_with_ranges_refuse_bad_values(ros_process, ros_graph, name, value, accepted):
    ros_process(RANGED, name="ranged")
    result = ros_graph.set_parameter("ranged", name, value)
    assert result.successful is accepted
    if not accepted:
        assert name in result.reason


def test_a_node_that_dies_fails_the_wait_with_its_own_log(ros_process, ros_graph):
    process = ros_process("import sys\nsys.exit('the lens cap is on')\n", name="camera")
    with pytest.raises(ProcessDied, match="the lens cap is on"):
        ros_graph.spin_until(lambda: False, what="an image")
    assert process.wait() == 1


def test_ctrl_c_ends_a_node_with_exit_code_zero(ros_process, ros_graph):
    process = ros_process(ECHO, name="echo")
    ros_graph.node()
    ros_graph.wait_for_node("echo")
    assert process.stop(signal.SIGINT) == 0, process.log


def test_two_domains_do_not_hear_each_other(ros_process, ros_graph, ros_domain):
    with reserved_domain() as other:
        assert other != ros_domain
        process = ros_process(LATCHING, name="labels", env={"ROS_DOMAIN_ID": str(other)})
        process.wait_for_log("published")
        neighbour = ros_process(LATCHING, name="neighbour", remap={"__node": "neighbour"})
        neighbour.wait_for_log("published")
        node = ros_graph.node()
        ros_graph.wait_for_node(
            "neighbour"
        )  # discovery works here, so silence from the other domain means something
        assert "labels" not in node.get_node_names()


def test_type_hashes_are_those_of_stock_vision_msgs():
    """Nodes only talk to stock ROS 2 if the hashes are equal; these are vision_msgs 4.1's."""
    expected = {
        "Detection2DArray": "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968",
        "LabelInfo": "RIHS01_3d37df4015cdf660cc851c51897f2acd957e1ca6205ba0a99aebffb9406b0783",
    }
    for name, wanted in expected.items():
        hashes = json.loads(description_file(name).read_text())["type_hashes"]
        assert {entry["type_name"]: entry["hash_string"] for entry in hashes}[
            f"vision_msgs/msg/{name}"
        ] == wanted
