"""Plays a bag into the perception node: with `ros2 bag play` where that exists, else with `bag_player`.

ros2 launch lla_fusion_ros replay.launch.py bag:=drive/ cameras:=left,right model:=signworld rate:=2.0
"""

from importlib.util import find_spec

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch_ros.actions import Node

from lla_fusion_ros.ros.launching import (
    PACKAGE,
    argument,
    common_arguments,
    dds_environment,
    make_node,
    with_failure,
)

# Seconds for the node to load its model: `bag_player` waits at most so long for subscribers, rosbag2 always.
PATIENCE = "30"
DELAY = "5"


def nodes(context: LaunchContext) -> list:
    bag, rate, loop = (argument(context, name) for name in ("bag", "rate", "loop"))
    options = ["--rate", rate, *(["--loop"] if loop == "true" else [])]
    end = argument(context, "exit_at_end") == "true"
    at_end = Shutdown(reason="the bag has been played") if end else None
    if find_spec("ros2bag") is not None:
        command = ["ros2", "bag", "play", bag, "--clock", "--delay", DELAY, *options]
        player = ExecuteProcess(cmd=command, output="screen", additional_env=dds_environment(context))
    else:
        player = Node(
            package=PACKAGE,
            executable="bag_player",
            arguments=[bag, "--wait", PATIENCE, *options],
            output="screen",
            additional_env=dds_environment(context),
        )
    return [*make_node(context, "perception"), *with_failure(player, at_end)]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="rosbag2 folder or file"),
            DeclareLaunchArgument("rate", default_value="1.0", description="speed of playing"),
            DeclareLaunchArgument(
                "loop", default_value="false", description="begin again at the end", choices=["true", "false"]
            ),
            DeclareLaunchArgument(
                "exit_at_end",
                default_value="true",
                description="stop everything when the bag is over",
                choices=["true", "false"],
            ),
            *common_arguments("replay.yaml", use_sim_time="true"),
            OpaqueFunction(function=nodes),
        ]
    )
