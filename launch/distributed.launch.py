"""A classifier per camera and one fusion node; each computer starts its part.

On the left camera's computer, and then on the vehicle's, which also has the right camera:
ros2 launch lla_fusion_ros distributed.launch.py model:=gtsrb cameras:=left fusion:=false
ros2 launch lla_fusion_ros distributed.launch.py model:=gtsrb cameras:=left,right classify:=right
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from lla_fusion_ros.ros.launching import argument, camera_names, common_arguments, make_node


def nodes(context: LaunchContext) -> list:
    cameras = camera_names(argument(context, "cameras"))
    if not cameras:
        raise RuntimeError("distributed.launch.py needs cameras:=NAME,NAME to start a classifier for each")
    classify = argument(context, "classify")
    here = cameras if classify == "all" else [] if classify == "none" else camera_names(classify)
    unknown = [camera for camera in here if camera not in cameras]
    if unknown:
        raise RuntimeError(f"classify names {', '.join(unknown)}, but cameras are {', '.join(cameras)}")
    started = []
    for camera in here:
        name = f"crop_classifier_{camera.replace('/', '_')}"
        started += make_node(context, "crop_classifier", name, [camera])
    if argument(context, "fusion") == "true":
        started += make_node(context, "class_fusion", cameras=cameras, with_device=False)
    return started


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *common_arguments("distributed.yaml"),
            DeclareLaunchArgument(
                "classify",
                default_value="all",
                description="cameras whose classifiers start here: all, none, or names separated by commas",
            ),
            DeclareLaunchArgument(
                "fusion",
                default_value="true",
                description="start the fusion node here",
                choices=["true", "false"],
            ),
            OpaqueFunction(function=nodes),
        ]
    )
