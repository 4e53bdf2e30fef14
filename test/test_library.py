"""The package as a library: what a user imports, and the example of its docstring."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

import lla_fusion_ros
from lla_fusion_ros.signworld import demo_drive
from lla_fusion_ros.types.errors import BundleError

# Runs without site-packages: what they run at start is no matter of this package.
IMPORT = """
import sys
sys.path.insert(0, sys.argv[1])
import lla_fusion_ros
assert not {"numpy", "torch", "cv2", "scipy"} & set(sys.modules), sorted(sys.modules)
"""


def example() -> str:
    """The indented block of the docstring."""
    lines = lla_fusion_ros.__doc__.splitlines()
    return dedent("\n".join(line for line in lines if line.startswith("    ") or not line))


def test_the_example_of_the_docstring_fuses_images_and_boxes_in_fifteen_lines(capsys):
    code = example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    drive = demo_drive()
    shots = (drive.frame(step, camera) for step in range(8) for camera in range(len(drive.camera_names)))
    frames = [(shot.camera, shot.stamp, shot.image, shot.boxes, shot.ids) for shot in shots]
    seen: dict = {"frames": frames}
    exec(compile(code, "example", "exec"), seen)
    assert len(capsys.readouterr().out.splitlines()) > 8
    assert seen["result"].pmf.sum(axis=1) == pytest.approx(1.0)
    assert all(isinstance(verdict, lla_fusion_ros.Verdict) for verdict in seen["result"].verdicts)


def test_every_exported_name_is_there_and_no_other():
    for name in lla_fusion_ros.__all__:
        assert getattr(lla_fusion_ros, name).__name__ == name
        assert name in dir(lla_fusion_ros)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lla_fusion_ros.no_such_name


def test_importing_the_package_costs_next_to_nothing():
    folder = lla_fusion_ros.__path__[0].rpartition("/")[0]
    subprocess.run([sys.executable, "-S", "-c", IMPORT, folder], check=True, timeout=60)


def test_a_bundle_that_ships_is_loaded_by_its_name_also_beside_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "gtsrb").mkdir()
    monkeypatch.chdir(tmp_path)
    assert lla_fusion_ros.load_bundle("gtsrb").classes == 43
    with pytest.raises(BundleError, match=r"'gtsbr' does not exist.*gtsrb"):
        lla_fusion_ros.load_bundle("gtsbr")
