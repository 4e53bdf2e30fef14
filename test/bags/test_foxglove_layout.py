"""The Foxglove layout of the docs names topics that exist."""

from __future__ import annotations

import json
from pathlib import Path

from lla_fusion_ros.messages import contract

LAYOUT = Path(__file__).parents[2] / "docs" / "foxglove_layout.json"


def panels(node) -> set[str]:
    if isinstance(node, str):
        return {node}
    return panels(node["first"]) | panels(node["second"])


def test_every_panel_is_placed_and_configured():
    layout = json.loads(LAYOUT.read_text())
    assert panels(layout["layout"]) == set(layout["configById"])


def test_every_topic_is_one_of_the_contract():
    known = {
        *("/" + contract.image_topic(camera) for camera in ("left", "right")),
        *("/" + contract.annotations_topic(camera) for camera in ("left", "right")),
        "/" + contract.FUSED_CLASSES,
        "/" + contract.LABELS,
        "/" + contract.OOD_WARNINGS,
        contract.NODE_DIAGNOSTICS,
    }
    for panel in json.loads(LAYOUT.read_text())["configById"].values():
        named = [
            panel.get("topicToRender"),
            panel.get("topicPath"),
            panel.get("imageMode", {}).get("imageTopic"),
        ]
        named += panel.get("imageMode", {}).get("annotations", {})
        named += [path["value"].split(".")[0] for path in panel.get("paths", [])]
        assert {name for name in named if name} <= known
