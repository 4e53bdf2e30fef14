"""setup.py and package.xml name what the code imports, and nothing that it does not."""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree

from support.processes import REPOSITORY

PYPI_NAME = {"cv2": "opencv-python-headless", "yaml": "PyYAML"}
# The rosdep key of each; `None`: there is none, and package.xml says so in a comment.
ROSDEP_KEY = {
    "cv2": "python3-opencv",
    "matplotlib": "python3-matplotlib",
    "numpy": "python3-numpy",
    "rich": "python3-rich",
    "rosbags": "python3-rosbags-pip",
    "safetensors": None,
    "scipy": "python3-scipy",
    "torch": "python3-torch",
    "yaml": "python3-yaml",
}
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


def manifest_dependencies(*tags: str) -> set[str]:
    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    return {element.text or "" for tag in tags for element in root.iter(tag)}


def test_setup_py_requires_just_what_is_imported():
    source = (REPOSITORY / "setup.py").read_text()
    block = re.search(r"install_requires=\[(.*?)\]", source, re.DOTALL)
    assert block
    required = set(re.findall(r'"([A-Za-z0-9_-]+)', block.group(1)))
    assert required == {PYPI_NAME.get(name, name) for name in imported_modules() if not is_ros(name)}


def test_package_xml_depends_on_just_what_is_imported():
    imported = imported_modules()
    keys = {ROSDEP_KEY.get(name, name) for name in imported} - {None}
    assert manifest_dependencies("depend", "exec_depend") == keys


def test_the_versions_of_code_and_manifest_agree():
    from lla_fusion_ros import __version__

    root = ElementTree.parse(REPOSITORY / "package.xml").getroot()
    assert root.findtext("version") == __version__


def test_every_direct_requirement_is_pinned():
    setup = (REPOSITORY / "setup.py").read_text()
    lists = re.findall(r"(?:install_requires=|\"test\": )\[(.*?)\]", setup, re.DOTALL)
    wanted = {name.lower() for text in lists for name in re.findall(r'"([A-Za-z0-9_-]+)', text)}
    wheels = (REPOSITORY / "tools/setup_ros_wheels.txt").read_text()
    wanted |= set(re.findall(r"^([a-z][a-z-]+)", wheels, re.MULTILINE))
    pinned = {line.partition("==")[0] for line in (REPOSITORY / "constraints.txt").read_text().splitlines()}
    assert len(lists) == 2 and wanted - pinned == set()
