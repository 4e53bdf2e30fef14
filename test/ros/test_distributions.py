"""The nodes on other ROS 2 distributions than the one that runs here: their rclpy by names and parameters,
and a node with no more than what Humble has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.bundle import save_bundle
from support.camera import SECOND, START, CameraOnGraph
from support.processes import REPOSITORY
from support.tiny_bundle import tiny_bundle

API = Path(__file__).with_name("rclpy_api.txt")
USERS = ["lla_fusion_ros/ros", "bench"]
CONFIG = """
[mypy]
mypy_path = {stubs}:{stubs}/..
follow_imports = skip
ignore_missing_imports = True
check_untyped_defs = True
disable_error_code = valid-type, no-redef
[mypy-rclpy,rclpy.*]
follow_imports = normal
ignore_missing_imports = False
ignore_errors = True
[mypy-lla_fusion_ros.ros.compat]
ignore_errors = True
"""


def unpack(distribution: str, folder: Path) -> None:
    """The stubs of one distribution, a file for each module of rclpy."""
    module = folder
    for line in API.read_text().splitlines()[1:]:
        if distribution[0].upper() not in line[:4]:
            continue
        if line[5:].startswith("module "):
            module = folder / "rclpy" / f"{line.split()[-1]}.pyi"
            module.parent.mkdir(parents=True, exist_ok=True)
            module.touch()
        else:
            with module.open("a") as file:
                file.write(f"{line[5:]}\n")
    (folder / "rclpy" / "impl" / "__init__.pyi").touch()


def check(distribution: str, folder: Path, *files: str | Path) -> str:
    """What mypy has to say about files where that distribution's rclpy is installed."""
    unpack(distribution, folder / "stubs")
    (folder / "mypy.ini").write_text(CONFIG.format(stubs=folder / "stubs"))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        folder / "mypy.ini",
        "--cache-dir",
        folder / "cache",
    ]
    done = subprocess.run(
        [*command, "--no-site-packages", "--no-error-summary", *files],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("distribution", ["humble", "jazzy", "kilted", "lyrical"])
def test_nodes_call_only_what_every_distribution_has(distribution, tmp_path):
    assert check(distribution, tmp_path, *USERS) == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("from rclpy.event_handler import SubscriptionEventCallbacks", "rclpy.event_handler"),
        ("node.create_subscription(str, 'x', print, 1).get_publisher_count()", "get_publisher_count"),
        (
            "node.create_subscription(str, 'x', print, 1, content_filter_options=None)",
            "content_filter_options",
        ),
        ("with SingleThreadedExecutor() as executor: executor.spin()", "__enter__"),
        ("node.create_timer(1.0, print, autostart=False)", "autostart"),
    ],
)
def test_a_call_that_only_later_distributions_have_is_found(line, says, tmp_path):
    script = tmp_path / "script.py"
    head = (
        "from rclpy.executors import SingleThreadedExecutor\nfrom rclpy.node import Node\nnode = Node('a')\n"
    )
    script.write_text(f"{head}{line}\n")
    assert says in check("humble", tmp_path, script)
    assert check("lyrical", tmp_path / "later", script) == ""


# The rclpy that is here, without what Humble's has not: callbacks get the message alone.
LIKE_HUMBLE = """
import sys
import rclpy.lifecycle, rclpy.qos_event
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.subscription import Subscription

sys.modules["rclpy.event_handler"] = None
del Subscription.get_publisher_count, Executor.__enter__, Executor.__exit__
create = Node.create_subscription
Node.create_subscription = lambda node, kind, topic, callback, *more, **options: create(
    node, kind, topic, lambda message: callback(message), *more, **options
)
from lla_fusion_ros.ros.executables import perception
perception()
"""


def test_a_node_without_humbles_missing_parts_fuses_and_says_once_what_it_cannot_count(
    ros_graph, ros_process, tmp_path
):
    from vision_msgs.msg import Detection2DArray

    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    parameters = {"model": str(tmp_path / "tiny.safetensors"), "cameras": ["left"]}
    process = ros_process(LIKE_HUMBLE, params=parameters, name="perception")
    node = ros_graph.node("camera")
    camera = CameraOnGraph(node, "left")
    fused = ros_graph.collect(node, Detection2DArray, "/fused_classes")
    ros_graph.wait_for_subscribers(camera.images)
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    steps = iter(range(1000))

    def send_until_fused() -> bool:
        camera.send(START + next(steps) * SECOND // 10, image, ("a",), [[20, 20, 16, 16]])
        return bool(fused)

    ros_graph.spin_until(send_until_fused, what="a fused frame")
    assert process.log.count("what DDS loses on the way is not counted") == 1, process.log
