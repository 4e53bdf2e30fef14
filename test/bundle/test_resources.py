"""Files of the package are found in the source tree, in an ament prefix and by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lla_fusion_ros
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.types.errors import LlaFusionError
from lla_fusion_ros.types.resources import find_resource

RESOURCES = ["types/resources.py", "bundle/resources.py"]


def test_the_source_tree_is_found():
    assert find_resource("package.xml").is_file()


def test_launch_files_find_resources_with_a_python_that_has_no_packages():
    code = "from lla_fusion_ros.types.resources import find_resource; print(find_resource('launch'))"
    env = {"PYTHONPATH": str(Path(lla_fusion_ros.__file__).parents[1])}
    isolated = [sys.executable, "-S", "-c", code]
    done = subprocess.run(isolated, capture_output=True, text=True, env=env)
    assert done.stdout.strip().endswith("launch"), done.stderr


def test_a_missing_resource_is_named_with_the_places_tried():
    with pytest.raises(
        LlaFusionError, match=r"'models/nothing.safetensors' is not in .*share/lla_fusion_ros"
    ):
        find_resource("models/nothing.safetensors")


def test_an_ament_prefix_is_searched_when_the_code_runs_from_an_installed_tree(tmp_path):
    installed = tmp_path / "lib" / "lla_fusion_ros"
    source = Path(lla_fusion_ros.__file__).parent
    for name in [
        "__init__.py",
        "types/__init__.py",
        "types/errors.py",
        "types/resources.py",
        "bundle/resources.py",
    ]:
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_bytes((source / name).read_bytes())
    model = tmp_path / "share" / "lla_fusion_ros" / "models" / "x.safetensors"
    model.parent.mkdir(parents=True)
    model.touch()
    code = "from lla_fusion_ros.bundle.resources import find_model; print(find_model('x'))"
    env = {"PYTHONPATH": str(tmp_path / "lib"), "AMENT_PREFIX_PATH": f"/nowhere:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout.strip() == str(model), done.stderr


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("zebra", "choose one of belgium, gtsrb, signworld, scores"),
        ("gtrsb.safetensors", "did you mean 'gtsrb'"),
        ("score", "did you mean 'scores'"),
    ],
)
def test_an_unknown_name_is_told_the_bundle_that_was_meant_or_all_that_ship(name, hint):
    with pytest.raises(LlaFusionError, match=f"'{name}' does not exist, and there is no .*; {hint}"):
        find_model(name)


def test_scores_is_no_file_and_the_sentence_says_what_it_is_for():
    with pytest.raises(LlaFusionError, match="'scores' has no networks.*`replay`"):
        find_model("scores")


def test_a_path_of_the_users_own_is_left_alone(tmp_path):
    path = tmp_path / "mine.safetensors"
    assert find_model(path) == path
