"""The repository as a package of a colcon workspace: what is built, where it lands, that it runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import REPOSITORY

COLCON = shutil.which("colcon", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
EXECUTABLES = {"bag_player", "class_fusion", "crop_classifier", "perception", "lla-fusion"}

pytestmark = pytest.mark.skipif(COLCON is None, reason="colcon is not installed; `make setup` installs it")


def colcon(workspace: Path, verb: str, *arguments: str) -> str:
    """Run a colcon verb on the repository with all of its output in `workspace`; returns what it printed."""
    bases = ["--build-base", f"{workspace}/build", "--install-base", f"{workspace}/install"]
    done = subprocess.run(
        [str(COLCON), "--log-base", f"{workspace}/log", verb, "--paths", str(REPOSITORY), *bases, *arguments],
        capture_output=True,
        text=True,
        cwd=workspace,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    colcon(folder, "build", "--packages-select", "lla_fusion_ros")
    return folder


def run_sourced(workspace: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command with the built workspace sourced and nothing of the repository importable."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    script = f". {workspace}/install/setup.sh && {command}"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=workspace, env=env)


def test_executables_are_where_ros2_run_looks(workspace):
    folder = workspace / "install/lla_fusion_ros/lib/lla_fusion_ros"
    assert {path.name for path in folder.iterdir()} == EXECUTABLES
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())


@pytest.mark.parametrize(
    ("folder", "pattern"), [("launch", "*.launch.py"), ("config", "*.*"), ("models", "*.safetensors")]
)
def test_shared_files_are_installed_unchanged(workspace, folder, pattern):
    installed = workspace / "install/lla_fusion_ros/share/lla_fusion_ros" / folder
    sources = {path.name: path.read_bytes() for path in (REPOSITORY / folder).glob(pattern)}
    assert sources, f"the repository has no {folder}/{pattern}"
    assert {path.name: path.read_bytes() for path in installed.iterdir() if path.is_file()} == sources


def test_the_package_is_in_the_ament_index_with_its_manifest(workspace):
    share = workspace / "install/lla_fusion_ros/share"
    assert (share / "ament_index/resource_index/packages/lla_fusion_ros").is_file()
    assert (share / "lla_fusion_ros/package.xml").read_bytes() == (REPOSITORY / "package.xml").read_bytes()


def test_the_command_line_runs_from_the_installed_tree(workspace):
    script = f"{workspace}/install/lla_fusion_ros/lib/lla_fusion_ros/lla-fusion"
    done = run_sourced(workspace, f"{script} --version")
    assert done.stdout.startswith("lla-fusion "), done.stderr


def test_the_command_line_is_on_the_path_of_a_sourced_workspace(workspace):
    done = run_sourced(workspace, "command -v lla-fusion && lla-fusion --version")
    place, version = done.stdout.splitlines()
    assert place == f"{workspace}/install/lla_fusion_ros/bin/lla-fusion", done.stderr
    assert version.startswith("lla-fusion ")


def test_installed_code_finds_the_installed_files(workspace):
    code = "from lla_fusion_ros.types.resources import find_resource; print(find_resource('package.xml'))"
    done = run_sourced(workspace, f'{sys.executable} -c "{code}"')
    assert done.stdout.strip() == f"{workspace}/install/lla_fusion_ros/share/lla_fusion_ros/package.xml", (
        done.stderr
    )


def test_colcon_test_runs_the_projects_tests_and_writes_their_results(workspace):
    # One small file stands for all: the whole suite would run inside itself.
    colcon(workspace, "test", "--pytest-args", "test/bundle/test_resources.py")
    results = subprocess.run(
        [str(COLCON), "test-result", "--test-result-base", f"{workspace}/build"],
        capture_output=True,
        text=True,
    )
    assert results.returncode == 0, results.stdout
    assert "0 failures" in results.stdout and not results.stdout.startswith("Summary: 0 tests")
