"""setup.py and package.xml name what the code imports, and nothing that it does not; nodes need little."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from support.processes import REPOSITORY

PYPI_NAME = {"cv2": "opencv-python-headless", "rerun": "rerun-sdk", "yaml": "PyYAML"}
# Packages that nodes can do without, by the extra that brings them.
LAB = {"matplotlib", "rich", "torch"}
EXTRAS = {
    "bags": {"rich", "rosbags"},
    "fleet": {"dask", "distributed", "pyarrow", "rich", "rosbags"},
    "import": {"onnx", "onnxruntime", *LAB},
    "lab": LAB,
    "onnx": {"onnxruntime"},
    "torch": {"torch"},
    "watch": {"rerun", "rich"},
}
NOT_FOR_NODES = {name for names in EXTRAS.values() for name in names}
OPTIONAL = {"foxglove_msgs"}  # nodes publish annotations where it is installed
NO_ROSDEP_KEY = {"safetensors"}  # package.xml says so in a comment
# Needed by rosbags, and so there wherever it is.
COMES_WITH_ROSBAGS = {"apsw", "backports", "compression", "lz4"}
ROS = {"cv_bridge", "launch", "launch_ros", "rclpy"}


def imported_modules() -> set[str]:
    """Top-level names of everything that the package and its launch files import from outside."""
    names: set[str] = set()
    for path in [*(REPOSITORY / "lla_fusion_ros").rglob("*.py"), *(REPOSITORY / "launch").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add((node.module or "").partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"lla_fusion_ros"} - COMES_WITH_ROSBAGS


def is_ros(name: str) -> bool:
    return name in ROS or name.endswith(("_msgs", "_srvs", "_interfaces"))


def names_in(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_-]+", requirement)[0] for requirement in requirements}


def manifest_dependencies(*tags: str) -> set[str]:
    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    found = [element for tag in tags for element in root.iter(tag) if "condition" not in element.attrib]
    return {element.text or "" for element in found}


@pytest.fixture
def given(monkeypatch) -> dict[str, Any]:
    """What setup.py tells setuptools."""
    caught: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", lambda **given: caught.update(given))
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path("setup.py")
    return caught


def test_setup_py_requires_just_what_is_imported(given):
    imported = {name for name in imported_modules() if not is_ros(name)}
    needed = {PYPI_NAME.get(name, name) for name in imported - NOT_FOR_NODES}
    assert names_in(given["install_requires"]) == needed and imported >= NOT_FOR_NODES
    extras = {name: names_in(listed) for name, listed in given["extras_require"].items()}
    expected = {extra: {PYPI_NAME.get(name, name) for name in names} for extra, names in EXTRAS.items()}
    every = {name for names in expected.values() for name in names}
    assert extras.pop("test") >= every and extras == expected


def test_package_xml_depends_on_just_what_nodes_import():
    keys = {"cv2": "python3-opencv"}
    needed = imported_modules() - NOT_FOR_NODES - NO_ROSDEP_KEY - OPTIONAL
    expected = {name if is_ros(name) else keys.get(name, f"python3-{name}") for name in needed}
    assert manifest_dependencies("depend", "exec_depend") == expected


@pytest.mark.parametrize(
    ("distribution", "has_torch"),
    [("humble", 0), ("jazzy", 0), ("kilted", 0), ("lyrical", 1), ("rolling", 1)],
)
def test_rosdep_is_asked_for_torch_only_where_its_package_is_new_enough(distribution, has_torch):
    package = pytest.importorskip("catkin_pkg.package").parse_package(REPOSITORY)
    package.evaluate_conditions({"ROS_DISTRO": distribution})
    keys = [each.name for each in package.exec_depends if each.evaluated_condition]
    assert keys.count("python3-torch") == has_torch
    every = [each.name for each in [*package.exec_depends, *package.test_depends]]
    assert not [key for key in every if key.endswith("-pip")], "packages of PyPI cannot be released"


def test_the_versions_of_code_and_manifest_agree():
    from lla_fusion_ros import __version__

    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    assert root.findtext("version") == __version__


def test_every_direct_requirement_is_pinned(given):
    wanted = names_in([*given["install_requires"], *given["extras_require"]["test"]])
    wheels = (REPOSITORY / "tools/setup_ros_wheels.txt").read_text()
    wanted |= set(re.findall(r"^([a-z][a-z-]+)", wheels, re.MULTILINE))
    pinned = {line.partition("==")[0] for line in (REPOSITORY / "constraints.txt").read_text().splitlines()}
    assert {name.lower() for name in wanted} - pinned == set()
