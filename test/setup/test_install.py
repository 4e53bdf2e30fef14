"""tools/install.sh on a ROS 2 as vehicles have it: its Python, its `ros2 run` and `ros2 launch`.

It runs where $LLA_FUSION_ROS names a folder like /opt/ros/jazzy, with launch and ros2cli. The torch of this
environment stands for one that the computer brings, as a Jetson does.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.processes import REPOSITORY

PREFIX = os.environ.get("LLA_FUSION_ROS", "")
pytestmark = pytest.mark.skipif(not PREFIX, reason="$LLA_FUSION_ROS is not set")
TORCH = (
    "torch",
    "torchgen",
    "functorch",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "fsspec",
    "filelock",
)
KEPT = ("PIP_", "ROS_", "http", "HTTP", "OMP_")  # of the environment; nothing of this one's Python


def shell(workspace: Path, script: str, **options) -> subprocess.Popen[str]:
    """A shell as a user has it after sourcing ROS."""
    env = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    env |= {"PATH": "/usr/bin:/bin", "HOME": str(workspace), "PYTHONPATH": str(workspace / "brought")}
    words = ["sh", "-c", f". {PREFIX}/setup.sh && {script}"]
    return subprocess.Popen(words, cwd=workspace, env=env, text=True, start_new_session=True, **options)


def said(workspace: Path, script: str) -> str:
    process = shell(workspace, script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate(timeout=550)[0]
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    source, brought = folder / "src" / "lla_fusion_ros", folder / "brought"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(("test/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    brought.mkdir()
    packages = Path(np.__file__).parents[1]
    for module in TORCH:
        (brought / module).symlink_to(packages / module)
    (brought / "typing_extensions.py").symlink_to(packages / "typing_extensions.py")
    assert "is here already and is used" in said(folder, "sh src/lla_fusion_ros/tools/install.sh")
    return folder


def test_executables_start_with_the_python_of_the_environment(workspace):
    script = workspace / "install/lla_fusion_ros/lib/lla_fusion_ros/perception"
    assert script.read_text().splitlines()[0] == f"#!{workspace}/fusion_venv/bin/python"
    assert "perception" in said(workspace, ". install/setup.sh && ros2 pkg executables lla_fusion_ros")
    assert said(workspace, ". install/setup.sh && lla-fusion --version").startswith("lla-fusion ")


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("fusion", "cameras:=left,right dds_profile:=shared_memory"),
        ("distributed", "cameras:=left,right"),
        ("replay", "bag:=drive cameras:=left,right exit_at_end:=false loop:=true"),
    ],
)
def test_launch_files_fuse_under_ros2_launch_and_end_well(workspace, ros_graph, file, arguments):
    from vision_msgs.msg import Detection2DArray

    from lla_fusion_ros.bundle import save_bundle
    from support.camera import SECOND, START, CameraOnGraph
    from support.tiny_bundle import tiny_bundle

    save_bundle(tiny_bundle(), workspace / "tiny.safetensors")
    if file == "replay":
        sys.path.insert(0, str(REPOSITORY / "test"))
        from replay.scenes import write_scene

        if not (workspace / "drive").exists():
            write_scene(workspace / "drive", frames=40, compressed=True)
        said(workspace, "fusion_venv/bin/python -m pip install --quiet rosbags")
    node = ros_graph.node("camera")
    fused = ros_graph.collect(node, Detection2DArray, "/fused_classes")
    words = f"{file}.launch.py model:=tiny.safetensors {arguments}"
    launch = f"exec ros2 launch --noninteractive lla_fusion_ros {words}"
    with open(workspace / f"{file}.log", "w") as log:
        process = shell(workspace, f". install/setup.sh && {launch}", stdout=log, stderr=log)
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    cameras = [] if file == "replay" else [CameraOnGraph(node, name) for name in ("left", "right")]
    steps = iter(range(100_000))

    def fused_both() -> bool:
        assert process.poll() is None, (workspace / f"{file}.log").read_text()
        for camera, step in zip(cameras, [next(steps)] * len(cameras), strict=True):
            camera.send(START + step * SECOND // 10, image, ("a",), [[20, 20, 16, 16]])
        return len({message.header.frame_id for message in fused}) == 2

    try:
        ros_graph.spin_until(fused_both, what=f"fused frames of both cameras from {file}.launch.py")
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=30)
    assert code == 0, (workspace / f"{file}.log").read_text()
