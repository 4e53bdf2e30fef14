"""Glitches and changes as a vehicle would see them."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.evaluation import change_rates
from lla_fusion_ros.networks.classifier import Classifier


def test_the_shipped_sign_world_bundle_follows_changes_and_not_glitches(monkeypatch) -> None:
    monkeypatch.setattr(change_rates, "PAIRS", 8)
    bundle = load_bundle("signworld")
    tracks = load_dataset("signworld", None, None, bundle.input_size, tracks=34, frames=20, seed=9)
    said = change_rates.change_rates(bundle, Classifier(bundle), tracks, 0, lambda name: None)
    glitch, abrupt, _, light = said
    assert (
        glitch["restarts"] <= 0.01 * glitch["frames"] / 10
        and glitch["sure_of_the_wrong_one"] <= 0.005 * glitch["frames"]
    )
    assert min(abrupt["followed"], light["followed"]) >= 0.8
    assert light["class_changes"] >= 0.8 * light["pairs"] and light["switch_warned_frames"] == 0
    assert abrupt["class_changes"] == 0
    assert [change_rates._to_and_fro(step, 4) for step in range(8)] == [0, 1, 2, 3, 2, 1, 0, 1]
    assert np.isclose(change_rates.SCENARIOS[2].share(44), 0.5)
