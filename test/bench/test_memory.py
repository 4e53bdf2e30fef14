"""Memory of a replay stays flat however long the bag is."""

from __future__ import annotations

from bench.memory import measure_memory
from lla_fusion_ros.bundle import save_bundle
from support.tiny_bundle import tiny_bundle


def test_a_bag_four_times_as_long_needs_no_more_memory(tmp_path):
    bundle = tmp_path / "tiny.safetensors"
    save_bundle(tiny_bundle(), bundle)
    short, long = measure_memory(bundle, seconds=8.0, factor=4.0, objects=2)
    assert long["views"] == 4 * short["views"] == 4 * 320
    more_pixels = long["decoded_mb"] - short["decoded_mb"]
    assert more_pixels > 400
    assert long["peak_mb"] - short["peak_mb"] < 0.15 * more_pixels
