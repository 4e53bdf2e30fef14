"""Memory stays flat on a long bag: the bounded form of `tools/measure_replay_memory.py`."""

from __future__ import annotations

import json
import subprocess
import sys

from lla_fusion_ros.bundle import save_bundle
from support.processes import REPOSITORY, child_environment
from support.tiny_bundle import tiny_bundle


def test_a_bag_four_times_as_long_needs_no_more_memory(tmp_path):
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    tool = REPOSITORY / "tools" / "measure_replay_memory.py"
    command = [sys.executable, str(tool), "--seconds", "8", "--factor", "4", "--objects", "2", "--json"]
    done = subprocess.run(
        [*command, "--bundle", str(tmp_path / "tiny.safetensors")],
        capture_output=True,
        text=True,
        env=child_environment(),
    )
    assert done.returncode == 0, done.stderr
    short, long = json.loads(done.stdout)
    assert long["views"] == 4 * short["views"] == 4 * 320
    more_pixels = long["decoded_mb"] - short["decoded_mb"]
    assert more_pixels > 400
    assert long["peak_mb"] - short["peak_mb"] < 0.15 * more_pixels
