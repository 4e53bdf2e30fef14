"""Everything in one process: images and tracked boxes in, fused classes and warnings out.

ros2 launch lla_fusion_ros fusion.launch.py model:=gtsrb cameras:=front_left,front_right device:=cuda
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction

from lla_fusion_ros.ros.launching import common_arguments, make_node


def nodes(context: LaunchContext) -> list:
    return make_node(context, "perception")


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*common_arguments("fusion.yaml"), OpaqueFunction(function=nodes)])
