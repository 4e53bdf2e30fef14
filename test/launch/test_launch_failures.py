"""What a supervisor of `ros2 launch` sees: exit codes; skipped where there is no launch_ros."""

from __future__ import annotations

import os
import re
import signal

import pytest

from lla_fusion_ros.types.resources import find_resource
from support.launching import skip_without_launch, small_model
from support.waiting import wait_for

skip_without_launch()

# As `ros2 launch` does it.
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription

arguments = [word.split(":=") for word in sys.argv[2:]]
service = LaunchService(noninteractive=True)
included = IncludeLaunchDescription(sys.argv[1], launch_arguments=arguments)
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


@pytest.fixture
def launched(ros_process):
    def launch(file: str, *arguments: str):
        process = ros_process(LAUNCH, str(find_resource(f"launch/{file}")), *arguments)
        process.expect_end()
        return process

    return launch


@pytest.fixture(scope="module")
def model():
    return f"model:={small_model()}"


def started(process) -> list[int]:
    """Ids of the nodes' processes, in the order of their start."""
    return [int(pid) for pid in re.findall(r"process started with pid \[(\d+)\]", process.log)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fusion.launch.py"], "'model' is not set"),
        (["fusion.launch.py", "model:=signworld", "params_file:=/nowhere.yaml"], "/nowhere.yaml"),
        (["fusion.launch.py", "model:=signworld", "log_level:=loud"], "loud"),
        (["distributed.launch.py", "model:=none_of_this_name", "cameras:=left"], "none_of_this_name"),
        (["replay.launch.py", "model:=signworld", "cameras:=left", "bag:=/no/bag"], "/no/bag"),
    ],
)
def test_a_node_that_refuses_fails_the_launch(launched, words, says):
    process = launched(*words)
    assert process.wait() == 1
    assert says in process.log and "Traceback" not in process.log, process.log


def test_a_node_that_is_killed_fails_the_launch_and_takes_the_others_along(launched, model):
    process = launched("distributed.launch.py", model, "cameras:=left")
    process.wait_for_log("networks ready")
    os.kill(started(process)[0], signal.SIGKILL)
    assert process.wait() == 1
    assert "failed with exit code -9" in process.log


def test_ctrl_c_ends_a_launch_well(launched, model):
    process = launched("fusion.launch.py", model)
    process.wait_for_log("networks ready")
    assert process.stop(signal.SIGINT) == 0, process.log


def test_a_killed_node_is_started_again_where_that_is_asked_for(launched, model):
    process = launched("fusion.launch.py", model, "respawn:=true")
    process.wait_for_log("networks ready")
    (first,) = started(process)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: process.log.count("networks ready") == 2, what="the node's second start")
    assert len(started(process)) == 2
    assert process.stop(signal.SIGINT) == 0, process.log
