"""What the launch files share: their arguments, and nodes made of them."""

from __future__ import annotations

import os
from typing import Any

from launch import Action, LaunchContext
from launch.actions import DeclareLaunchArgument, ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lla_fusion_ros.resources import find_resource

PACKAGE = "lla_fusion_ros"
RESPAWN_DELAY = 2.0  # seconds


def common_arguments(params_file: str, use_sim_time: str = "false") -> list[DeclareLaunchArgument]:
    """Arguments of every launch file; `params_file` is the one of `config/` that is used by default."""
    default = str(find_resource(f"config/{params_file}"))
    return [
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes and topics"),
        DeclareLaunchArgument("params_file", default_value=default, description="YAML file of parameters"),
        DeclareLaunchArgument(
            "model",
            default_value="",
            description="model file, or the name of one that ships; empty: that of the params file",
        ),
        DeclareLaunchArgument(
            "device", default_value="", description="auto, cpu, cuda, cuda:0; empty: that of the params file"
        ),
        DeclareLaunchArgument(
            "cameras",
            default_value="",
            description="names of the cameras, separated by commas; empty: those of the params file",
        ),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value=use_sim_time,
            description="take the time from /clock",
            choices=["true", "false"],
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            description="least severity that is logged",
            choices=["debug", "info", "warn", "error", "fatal"],
        ),
        DeclareLaunchArgument(
            "respawn",
            default_value="false",
            description="start a node again when it has ended; else its failure ends the launch with code 1",
            choices=["true", "false"],
        ),
    ]


def argument(context: LaunchContext, name: str) -> str:
    """The value of a launch argument, without blanks around it."""
    return LaunchConfiguration(name).perform(context).strip()


def camera_names(text: str) -> list[str]:
    """`left, right` -> ["left", "right"]"""
    return [name.strip() for name in text.split(",") if name.strip()]


def make_node(
    context: LaunchContext,
    executable: str,
    name: str | None = None,
    cameras: list[str] | None = None,
    with_device: bool = True,
) -> list[Action]:
    """A node of the package with the common arguments; what was left empty stays as in the params file.

    Where it is not to be started again, its failure is that of the whole launch.
    """
    overrides: dict[str, Any] = {"use_sim_time": argument(context, "use_sim_time") == "true"}
    if model := argument(context, "model"):
        # a node's working folder need not be this one's; the names of shipped models stay names
        overrides["model"] = os.path.abspath(model) if os.path.exists(model) else model
    if with_device and (device := argument(context, "device")):
        overrides["device"] = device
    if cameras := cameras or camera_names(argument(context, "cameras")):
        overrides["cameras"] = cameras
    params_file = argument(context, "params_file")
    if not os.path.isfile(params_file):
        raise RuntimeError(f"params_file '{params_file}' does not exist or is no file")
    respawn = argument(context, "respawn") == "true"
    node = Node(
        package=PACKAGE,
        executable=executable,
        name=name or executable,
        namespace=argument(context, "namespace"),
        parameters=[params_file, overrides],
        arguments=["--ros-args", "--log-level", argument(context, "log_level")],
        output="screen",
        respawn=respawn,
        respawn_delay=RESPAWN_DELAY,
    )
    return [node] if respawn else with_failure(node)


def with_failure(process: ExecuteProcess, at_end: Action | None = None) -> list[Action]:
    """A process whose failure ends the launch with an error; `at_end` follows where it ends well."""

    def judge(event: ProcessExited, context: LaunchContext) -> Action | None:
        if event.returncode and not context.is_shutdown:
            # launch fails only where something raises; it then stops all other processes
            raise RuntimeError(f"{event.process_name} failed with exit code {event.returncode}")
        return at_end

    return [RegisterEventHandler(OnProcessExit(target_action=process, on_exit=judge)), process]
