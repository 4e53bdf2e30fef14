"""What the launch files share: their arguments, and nodes made of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from launch import Action, LaunchContext
from launch.actions import DeclareLaunchArgument, ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lla_fusion_ros.types.resources import find_resource

PACKAGE = "lla_fusion_ros"
RESPAWN_DELAY = 2.0  # seconds
_ONE_EACH = "one for each of `cameras`, separated by commas, or one with {camera} in it; empty: "
CAMERA_ARGUMENTS = {  # they become parameters of each camera
    "image_topic": f"images: {_ONE_EACH}<camera>/image, or that of the params file",
    "detections_topic": f"boxes in the images: {_ONE_EACH}<camera>/detections, or that of the params file. "
    "A topic of all cameras tells them apart by its frame_id, the images'",
    "camera_info_topic": f"calibrations of the cameras: {_ONE_EACH}camera_info beside the images",
    "box_frame": "pixels of the boxes: image, stretch, letterbox or crop; empty: that of the params file",
    "box_size": "width and height of the detector's input, as 640,640; empty: that of the params file",
}


def common_arguments(params_file: str, use_sim_time: str = "false") -> list[DeclareLaunchArgument]:
    """Arguments of every launch file; `params_file` is the one of `config/` that is used by default."""
    default = str(find_resource(f"config/{params_file}"))
    return [
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes and topics"),
        DeclareLaunchArgument("params_file", default_value=default, description="YAML file of parameters"),
        DeclareLaunchArgument(
            "model",
            default_value="",
            description="model file, the name of one that ships, or scores (the detector's own are fused); "
            "empty: that of the params file",
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
            "identity",
            default_value="",
            description="who is who: auto, global or camera; empty: that of the params file",
        ),
        DeclareLaunchArgument(
            "objects_topic",
            default_value="",
            description="objects in space that name the boxes of all cameras; empty: that of the params file",
        ),
        DeclareLaunchArgument(
            "class_names",
            default_value="",
            description="of model:=scores: the detector's label file, or its classes, separated by commas; "
            "empty: that of the params file",
        ),
        *(
            DeclareLaunchArgument(name, default_value="", description=text)
            for name, text in CAMERA_ARGUMENTS.items()
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
            "dds_profile",
            default_value="",
            description="Fast DDS profile of the nodes started here: shared_memory (config/fastdds.xml, for "
            "raw images), or a file; empty: that of the environment",
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


def camera_parameters(given: dict[str, str], cameras: list[str]) -> dict[str, Any]:
    """Parameters of each camera from the launch arguments about cameras."""
    given = {name: text for name, text in given.items() if text}
    if given and not cameras:
        raise RuntimeError(f"{', '.join(given)} needs `cameras`, the names of the cameras it is for")
    parameters: dict[str, Any] = {}
    for name, text in given.items():
        values: list[Any] = camera_names(text)
        if name == "box_size":
            values = [_box_size(text)] * len(cameras)
        elif name == "box_frame" or "{camera}" in text:
            values = [text.replace("{camera}", camera) for camera in cameras]
        elif name == "detections_topic" and len(values) == 1:
            values *= len(cameras)  # which tell them apart by `frame_id`
        if len(values) != len(cameras):
            raise RuntimeError(f"{name}:={text} has {len(values)} topics for {len(cameras)} cameras")
        parameters |= {f"{camera}.{name}": value for camera, value in zip(cameras, values, strict=True)}
    return parameters


def _box_size(text: str) -> list[float]:
    try:
        width, height = map(float, text.split(","))
    except ValueError:
        raise RuntimeError(f"box_size:={text}: expected a width and a height, as 640,640") from None
    return [width, height]


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
    if identity := argument(context, "identity"):
        overrides["identity"] = identity
    if with_device and (objects := argument(context, "objects_topic")):
        overrides["objects_topic"] = objects
    if with_device and (names := argument(context, "class_names")):
        overrides["class_names"] = os.path.abspath(names) if os.path.exists(names) else names
    every = camera_names(argument(context, "cameras"))
    cameras = cameras or every
    if cameras:
        overrides["cameras"] = cameras
    if with_device:  # nodes that take images
        given = {name: argument(context, name) for name in CAMERA_ARGUMENTS}
        of_all = camera_parameters(given, every)
        overrides |= {name: value for name, value in of_all.items() if name.rpartition(".")[0] in cameras}
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
        additional_env=dds_environment(context),
        respawn=respawn,
        respawn_delay=RESPAWN_DELAY,
    )
    return [node] if respawn else with_failure(node)


def dds_environment(context: LaunchContext) -> dict[str, str]:
    """The variable by which Fast DDS finds its profile; both names where the distribution is not known."""
    profile = argument(context, "dds_profile")
    if not profile:
        return {}
    path = find_resource("config/fastdds.xml") if profile == "shared_memory" else Path(profile).expanduser()
    if not path.is_file():
        raise RuntimeError(f"dds_profile '{profile}' is neither shared_memory nor a file")
    since_kilted = os.environ.get("ROS_DISTRO", "") >= "kilted"  # they come in the order of the alphabet
    names = ["FASTDDS_DEFAULT_PROFILES_FILE", *([] if since_kilted else ["FASTRTPS_DEFAULT_PROFILES_FILE"])]
    return dict.fromkeys(names, str(path.resolve()))


def with_failure(process: ExecuteProcess, at_end: Action | None = None) -> list[Action]:
    """A process whose failure ends the launch with an error; `at_end` follows where it ends well."""

    def judge(event: ProcessExited, context: LaunchContext) -> Action | None:
        if event.returncode and not context.is_shutdown:
            # launch fails only where something raises; it then stops all other processes
            raise RuntimeError(f"{event.process_name} failed with exit code {event.returncode}")
        return at_end

    return [RegisterEventHandler(OnProcessExit(target_action=process, on_exit=judge)), process]
