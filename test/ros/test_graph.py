"""What the other tests on a real graph rest on: isolation, deaths that are noticed, types of stock ROS 2."""

from __future__ import annotations

import json

import pytest

from support.domains import reserved_domain
from support.interfaces import description_file
from support.processes import ProcessDied

NODE = """
import rclpy
from rclpy.executors import ExternalShutdownException

try:
    rclpy.init()
    node = rclpy.create_node("somebody")
    print("there")
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
finally:
    rclpy.try_shutdown()
"""


def test_a_node_that_dies_fails_the_wait_with_its_own_log(ros_process, ros_graph):
    process = ros_process("import sys\nsys.exit('the lens cap is on')\n", name="camera")
    with pytest.raises(ProcessDied, match="the lens cap is on"):
        ros_graph.spin_until(lambda: False, what="an image")
    assert process.wait() == 1


def test_two_domains_do_not_hear_each_other(ros_process, ros_graph, ros_domain):
    with reserved_domain() as other:
        assert other != ros_domain
        ros_process(NODE, name="elsewhere", env={"ROS_DOMAIN_ID": str(other)}).wait_for_log("there")
        ros_process(NODE, name="here", remap={"__node": "neighbour"})
        node = ros_graph.node()
        ros_graph.wait_for_node("neighbour")  # discovery works, so the other domain's silence means something
        assert "somebody" not in node.get_node_names()


def test_type_hashes_are_those_of_stock_vision_msgs():
    """Nodes only talk to stock ROS 2 if the hashes are equal: those of vision_msgs 4.1.1 and 4.2.0."""
    expected = {
        "Detection2DArray": "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968",
        "LabelInfo": "RIHS01_3d37df4015cdf660cc851c51897f2acd957e1ca6205ba0a99aebffb9406b0783",
        "VisionInfo": "RIHS01_95d3116a17484ad91c9a2686e1d54890bbfc3ff6c6a2de137738c4950d45d284",
    }
    for name, wanted in expected.items():
        hashes = json.loads(description_file(name).read_text())["type_hashes"]
        assert {entry["type_name"]: entry["hash_string"] for entry in hashes}[
            f"vision_msgs/msg/{name}"
        ] == wanted
