"""Everything but `ros/` works on a machine without ROS: imported in a fresh interpreter that has none."""

import pkgutil
import subprocess
import sys

import lla_fusion_ros

ROS_FOLDERS = ("lla_fusion_ros.ros",)

SCRIPT = """
import importlib, sys

class NoRos:
    blocked = ("rclpy", "rclpy_action", "sensor_msgs", "std_srvs", "vision_msgs", "diagnostic_msgs", "launch",
               "launch_ros", "ament_index_python", "rosbag2_py", "cv_bridge", "rosidl_runtime_py")
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"{name} is blocked: this module must not need ROS", name=name)

sys.meta_path.insert(0, NoRos())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def modules():
    names = [m.name for m in pkgutil.walk_packages(lla_fusion_ros.__path__, "lla_fusion_ros.")]
    return [name for name in names if not name.startswith(ROS_FOLDERS) and not name.endswith("__main__")]


def run(names):
    return subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, timeout=300)


def test_every_module_outside_ros_imports_without_ros():
    names = modules()
    assert {"lla_fusion_ros.types.pmf", "lla_fusion_ros.posterior.fit", "lla_fusion_ros.fusion.wls"} <= set(
        names
    )
    result = run(names)
    assert result.returncode == 0, result.stderr


def test_the_block_would_notice_an_import_of_ros():
    result = run(["rclpy"])
    assert result.returncode != 0 and "is blocked" in result.stderr
