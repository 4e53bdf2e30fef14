"""How often tracks are called unknown or cannot be told, under conditions and for strangers."""

from __future__ import annotations

import cv2
import numpy as np

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.datasets.conditions import CONDITIONS, UNREADABLE
from lla_fusion_ros.lab.datasets.sign_sets import BELGIUM_NAMES, GTSRB_NAMES
from lla_fusion_ros.lab.datasets.strangers import STRANGERS
from lla_fusion_ros.lab.evaluation import warning_rates
from lla_fusion_ros.lab.evaluation.selection import select_tracks
from lla_fusion_ros.networks.classifier import Classifier
from support.tiny_datasets import make_trackset
from support.watched_bundle import watched_bundle


def test_every_condition_and_kind_of_stranger_is_counted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(warning_rates, "BACKGROUND_TRACKS", 5)
    cv2.imwrite(str(tmp_path / "wall.png"), np.full((50, 60, 3), 128, np.uint8))
    bundle = watched_bundle()
    chosen = select_tracks(bundle, make_trackset(classes=5, tracks=3, frames=4), "all")
    stages: list[str] = []
    parts = chosen.inside, chosen.outside, str(tmp_path), 0
    records = list(warning_rates.warning_rates(bundle, Classifier(bundle), *parts, stages.append))
    assert [r["condition"] for r in records if r["tracks_of"] == "known"] == [*CONDITIONS, *UNREADABLE]
    assert {r["tracks_of"]: r["tracks"] for r in records} == {
        "known": 12,
        "unknown": 3,
        "drawn background": 5,
        "background images": 5,
    }
    assert len(stages) == len(records)
    for r in records:
        assert 0 <= r["unknown"] + r["cannot_tell"] <= r["tracks"] and 0 <= r["sure"] <= r["tracks"], r
    assert all(r["right"] == 0 for r in records if r["tracks_of"] != "known")


def test_named_strangers_are_classes_of_their_data_set_and_none_of_the_other() -> None:
    belgian = STRANGERS["gtsrb", "belgiumtsc"]
    assert "one way" in belgian <= set(BELGIUM_NAMES) and not belgian & set(GTSRB_NAMES)


def test_background_without_conditions_is_refused(capsys) -> None:
    assert main(["evaluate", "signworld", "--dataset", "signworld", "--background", "x"]) == 1
    assert "--background needs --conditions" in capsys.readouterr().err
