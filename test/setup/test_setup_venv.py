"""The set-up script: its sentences, its stamps, and what it makes of a half-finished environment."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import ModuleType

import pytest

from support.processes import REPOSITORY


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of just the files the set-up reads."""
    folder = tmp_path / "project"
    for name in ["tools", "interfaces"]:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ["setup.py", "setup.cfg", "constraints.txt", "Makefile"]:
        shutil.copy(REPOSITORY / name, folder)
    return folder


@pytest.fixture
def script(project: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module that works on the copy."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    module = importlib.import_module("setup_venv")
    monkeypatch.setattr(module, "ROOT", project)
    monkeypatch.setattr(module, "VENV", project / ".venv")
    return module


def run_setup(project: Path, tools: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    """Run the set-up with a PATH that holds only the named programs."""
    programs = project.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in ["sh", "dirname", *tools]:
        source = sys.executable if name == "python3" else shutil.which(name)
        assert source, f"this test needs {name}"
        (programs / name).unlink(missing_ok=True)
        # A shell wrapper, because a virtual environment's Python must be called by its own path.
        (programs / name).write_text(f'#!/bin/sh\nexec {source} "$@"\n')
        (programs / name).chmod(0o755)
    return subprocess.run(
        [shutil.which("sh") or "sh", "tools/setup.sh"],
        cwd=project,
        capture_output=True,
        text=True,
        env={"PATH": str(programs), **env},
    )


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        (["gcc", "cmake", "make"], "g++"),
        (["g++", "cmake", "make"], "gcc"),
        (["gcc", "g++", "make"], "cmake"),
        (["gcc", "g++", "cmake"], "make"),
    ],
)
def test_a_missing_tool_is_named_in_one_sentence_before_anything_is_done(project, present, missing):
    done = run_setup(project, ["python3", *present])
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"Set-up failed: {missing} is missing; install it (Debian, Ubuntu: sudo apt "
    )
    assert done.stderr.count("\n") == 1
    assert not (project / ".venv").exists()


def test_an_old_python_is_refused_in_one_sentence(project):
    old = project / "old_python"
    old.write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo Python 3.8.18; else exit 1; fi\n')
    old.chmod(0o755)
    done = run_setup(project, [], PYTHON=str(old))
    assert done.returncode == 1
    assert "Python 3.10 or newer is needed and Python 3.8.18 was found" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_python_at_all_is_said_in_one_sentence(project):
    done = run_setup(project, [])
    assert done.returncode == 1
    assert "Python 3.10 or newer is needed and none was found" in done.stderr


def test_a_full_disk_is_named_before_anything_is_done(script, project, monkeypatch, capsys):
    usage = namedtuple("usage", "total used free")(100, 99, 2_100_000_000)
    monkeypatch.setattr(script.shutil, "disk_usage", lambda path: usage)
    assert script.main() == 1
    assert "3 GB of disk are needed and 2.1 GB are free; make room in" in capsys.readouterr().err
    assert not (project / ".venv").exists()


def test_a_disk_that_fills_up_during_the_work_is_named(script):
    from setup_progress import explain

    lines = ["Collecting torch", "ERROR: Could not install: [Errno 28] No space left on device"]
    assert explain(lines, "pip failed", Path("x.log")).startswith("the disk is full; free some space")


def test_metadata_of_a_half_copied_package_is_removed_and_whole_packages_stay(script, project):
    packages = project / ".venv/lib/python3.11/site-packages"
    for name, files in {
        "whole-1.dist-info": ["METADATA", "INSTALLER"],
        "half-1.dist-info": ["METADATA"],
    }.items():
        (packages / name).mkdir(parents=True)
        for file in files:
            (packages / name / file).touch()
    script.forget_half_installed_packages()
    assert [path.name for path in packages.iterdir()] == ["whole-1.dist-info"]


def test_only_steps_from_the_first_changed_input_on_are_repeated(script, project, monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(script, "check_machine", lambda builds: None)
    monkeypatch.setattr(script, "make_venv", lambda on_ros: done.append("venv"))
    monkeypatch.setattr(script, "install_wheels", lambda progress: done.append("packages"))
    monkeypatch.setattr(script, "build_interfaces", lambda source, *rest: done.append(source.name))
    monkeypatch.setattr(script, "check_imports", lambda progress: done.append("check"))
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    for name, path in {
        "WHEELS": "tools/setup_ros_wheels.txt",
        "INTERFACES": "interfaces",
    }.items():
        monkeypatch.setattr(script, name, project / path)
    script.set_up()
    detectors = ["yolo_msgs", "tier4_perception_msgs", "foxglove_msgs"]
    assert done == ["venv", "packages", "vision_msgs", "tf2_msgs", *detectors, "check"]
    done.clear()
    script.set_up()
    assert not done, "a second run has nothing to do"
    (project / "interfaces/yolo_msgs/msg/Point2D.msg").write_text("float64 x\n")
    script.set_up()
    assert done == [*detectors, "check"]
    done.clear()
    (project / "interfaces/vision_msgs/msg/Point2D.msg").write_text("float64 x\n")
    script.set_up()
    assert done == ["vision_msgs", "tf2_msgs", *detectors, "check"]
    done.clear()
    (project / "tools/setup_ros_wheels.txt").write_text("ros-jazzy-rclpy\n")
    script.set_up()
    assert done == ["packages", "vision_msgs", "tf2_msgs", *detectors, "check"]


def test_cmake_files_of_the_wheels_are_pointed_to_this_environment(script, project):
    from setup_interfaces import point_cmake_files_to

    venv = project / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (venv / "bin/python").chmod(0o755)
    file = venv / "share/std_msgs/cmake/export.cmake"
    file.parent.mkdir(parents=True)
    stem = "/opt/python/cp312-cp312"
    numpy = f"{stem}/lib/python3.12/site-packages/numpy/_core/include"
    file.write_text(f'INCLUDE "{stem}/include/python3.12;{numpy};${{_IMPORT_PREFIX}}/include"\n')
    point_cmake_files_to(venv)
    python_include, numpy_include, rest = file.read_text().split('"')[1].split(";")
    assert os.path.isfile(f"{python_include}/Python.h")
    assert os.path.isfile(f"{numpy_include}/numpy/arrayobject.h")
    assert rest == "${_IMPORT_PREFIX}/include"
