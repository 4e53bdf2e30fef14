"""The check of imports, which `make lint` runs, sees those that go against the flow of data."""

import pytest

from support.processes import REPOSITORY


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """The faults of a made-up package with the given files."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    from check_imports import faults  # a folder of scripts, not a package

    def of(**files: str) -> str:
        for name, source in files.items():
            path = tmp_path / "lla_fusion_ros" / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return "\n".join(faults(tmp_path / "lla_fusion_ros"))

    return of


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("from lla_fusion_ros.bundle import Bundle", "fusion/rule.py:1: 'fusion' comes before 'bundle'"),
        ("def late():\n    import lla_fusion_ros.ros.run_node", "rule.py:2: 'fusion' comes before 'ros'"),
        ("if TYPE_CHECKING:\n    from lla_fusion_ros import cli", "rule.py:2: 'fusion' comes before 'cli'"),
        ("from lla_fusion_ros import Bundle", "import 'Bundle' from the folder it is in"),
        ("from . import other", "'..other' is relative"),
        ("import rclpy.node", "'rclpy' is for ros only"),
        ("from sensor_msgs.msg import Image", "'sensor_msgs' is for ros only"),
        ("import matplotlib.pyplot", "'matplotlib' is for lab, demo, cli only"),
        ("import numpy\nfrom lla_fusion_ros import __version__\nfrom lla_fusion_ros.types import views", ""),
    ],
)
def test_an_import_against_the_flow_is_told_with_its_line(faults, source, told):
    found = faults(fusion__rule=source)
    assert told in found and bool(told) == bool(found)


def test_folders_that_import_each_other_are_told(faults):
    back = "from lla_fusion_ros.lab.plots.style import figure"
    assert faults(lab__plots__style="", lab__paper__tables=back) == ""
    found = faults(lab__plots__style="from lla_fusion_ros.lab.paper import tables", lab__paper__tables=back)
    assert "folders import each other: lab/p" in found


def test_a_new_folder_needs_a_place_in_the_order(faults):
    assert "'cellar' is not in the order" in faults(cellar__wine="import numpy")
