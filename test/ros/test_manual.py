"""The page of parameters and the YAML files say what the code says, and nodes take them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lla_fusion_ros.errors import InputError
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


def test_a_yaml_file_with_an_unknown_parameter_is_refused_and_may_serve_other_cameras(ros_graph, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {cameras: [left], right: {time_offset: 0.1}, widnow: 3}}")
    arguments = ["--ros-args", "--params-file", str(file)]
    with pytest.raises(InputError, match="no parameter 'widnow', did you mean 'window'"):
        PerceptionNode(cli_args=arguments)
    file.write_text(file.read_text().replace("widnow", "window"))
    node = ros_graph.add(PerceptionNode(cli_args=arguments))
    assert node.parameters.cameras == ("left",)
