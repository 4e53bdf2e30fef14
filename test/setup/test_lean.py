"""A vehicle without the extras, a desk without ROS: what works there, and what is said of the rest."""

import pkgutil
import subprocess
import sys

import pytest

import lla_fusion_ros
from support.processes import child_environment

ROS = ("ament_index_python", "builtin_interfaces", "cv_bridge", "diagnostic_msgs", "launch", "launch_ros",
       "rclpy", "rosgraph_msgs", "rosidl_runtime_py", "sensor_msgs", "std_srvs", "vision_msgs")  # fmt: skip
EXTRAS = ("backports", "dask", "distributed", "lz4", "matplotlib", "pyarrow", "rich", "rosbags")
NODES = tuple(f"lla_fusion_ros.ros.{name}" for name in ("class_fusion", "crop_classifier", "perception"))

IMPORT = """
import importlib, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"{name} is not there", name=name)

sys.meta_path.insert(0, Without())
"""
EVERY = "for name in sys.argv[2:]:\n    importlib.import_module(name)\n"
VERB = "from lla_fusion_ros.cli.main import main\nsys.exit(main(sys.argv[2:]))\n"


def without(missing, code, *words):
    command = [sys.executable, "-c", IMPORT + code, ",".join(missing), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=child_environment())


def test_everything_outside_ros_imports_without_ros():
    every = [module.name for module in pkgutil.walk_packages(lla_fusion_ros.__path__, "lla_fusion_ros.")]
    names = [name for name in every if not name.startswith("lla_fusion_ros.ros.") and "__main__" not in name]
    assert "lla_fusion_ros.fusion.wls" in names
    done = without(ROS, EVERY, *names)
    assert done.returncode == 0, done.stderr


def test_the_nodes_need_no_extra():
    pytest.importorskip("rclpy")
    done = without(EXTRAS, EVERY, *NODES)
    assert done.returncode == 0, done.stderr


def test_what_is_hidden_is_not_found():
    assert "rclpy is not there" in without(ROS, EVERY, "rclpy").stderr


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("rosbags", ["info", "drive.mcap"], "bags"),
        ("rosbags", ["replay", "drive"], "bags"),
        ("distributed", ["replay", "drive", "other"], "fleet"),
        ("pyarrow", ["compare", "one", "other"], "fleet"),
        ("rich", ["make-bag", "--drive", "--out", "drive"], "bags"),
        ("rich", ["train", "--dataset", "signworld", "--out", "x.safetensors"], "lab"),
        ("matplotlib", ["evaluate", "signworld", "--dataset", "signworld", "--plots", "figures"], "lab"),
    ],
)
def test_a_verb_without_its_extra_says_what_to_install(tmp_path, monkeypatch, missing, words, extra):
    monkeypatch.chdir(tmp_path)
    done = without([missing], VERB, *words)
    sentence = f'{missing}, which is not installed here; pip install "lla_fusion_ros[{extra}]"\n'
    assert done.returncode == 1 and done.stderr == f"lla-fusion: {words[0]}: needs {sentence}"
    assert not list(tmp_path.iterdir())


def test_a_vehicle_explains_verbs_and_shows_bundles_without_extras():
    code = VERB.replace("sys.exit(main(sys.argv[2:]))", "from lla_fusion_ros.cli.main import find_verbs") + (
        "assert main(['info', 'signworld']) == 0\n"
        "for verb in find_verbs():\n    try:\n        main([verb, '--help'])\n"
        "    except SystemExit as leaving:\n        assert leaving.code == 0\n"
    )
    done = without(EXTRAS, code)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("example:") >= 7, done.stderr


def test_the_bag_player_without_its_extra_says_what_to_install():
    pytest.importorskip("rclpy")
    done = without(["rosbags"], "from lla_fusion_ros.ros.executables import bag_player\nbag_player()\n")
    expected = 'bag_player: needs rosbags, which is not installed here; pip install "lla_fusion_ros[bags]"\n'
    assert (done.returncode, done.stderr) == (1, expected)
