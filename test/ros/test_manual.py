"""The page of parameters and the YAML files say what the code says, and nodes take them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lla_fusion_ros.ros.manual import COMMAND, CONFIGS, config_file, parameters_page
from lla_fusion_ros.ros.perception import PerceptionNode

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_parameters_is_up_to_date():
    assert (ROOT / "docs/parameters.md").read_text() == parameters_page(), f"run {COMMAND}"


@pytest.mark.parametrize("name", CONFIGS)
def test_the_yaml_files_are_up_to_date(name):
    assert (ROOT / "config" / name).read_text() == config_file(name), f"run {COMMAND}"


@pytest.mark.parametrize("name", CONFIGS)
def test_a_node_declares_every_parameter_of_the_yaml_files_and_takes_its_value(ros_graph, name):
    path = ROOT / "config" / name
    node = ros_graph.add(PerceptionNode(cli_args=["--ros-args", "--params-file", str(path)]))
    values = yaml.safe_load(path.read_text())["/**"]["ros__parameters"]
    assert node.parameters.cameras == tuple(values["cameras"])
    for key, value in values.items():
        if key == "cameras" or isinstance(value, dict):
            continue
        assert node.get_parameter(key).value == value, key
