"""Frames of views through the engine: what is counted, and what is passed on."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FusionEngine
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.status import OK, parse_diagnostics
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.health import Health
from lla_fusion_ros.stream.perception import FuseStage
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.warnings.fit import fit_warnings
from support.feature_world import CLASSES, FeatureWorld, WorldModel

SECOND = 1_000_000_000
NAMES = [f"class {number}" for number in range(CLASSES)]


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld(seed=3)


@pytest.fixture(scope="module")
def model(world) -> WorldModel:
    return WorldModel(world, fit_warnings(world.posterior, world.known(60), world.strange(40)), "pool")


def frame(tracks, step: int, seconds: float | None = None, ids=None) -> ViewFrame:
    count = len(tracks.label)
    stamp = round((1000 + (0.1 * step if seconds is None else seconds)) * SECOND)
    names = tuple(f"t{i}" for i in range(count)) if ids is None else ids
    header, boxes = Header(stamp, "front"), np.zeros((count, 5))
    return ViewFrame("front", header, names, boxes, tracks.views_at(step % 12), names)


@pytest.mark.parametrize("restart", [True, False])
def test_identity_switches_and_clock_jumps_are_in_the_diagnostics(world, model, restart) -> None:
    tally = Tally()
    fuse = FuseStage(FusionEngine(model, FusionSettings(restart_on_switch=restart)), tally)
    first, second = world.tracks(np.zeros(5, int)), world.tracks(np.full(5, CLASSES - 1))
    fuse([frame(first if step < 8 else second, step) for step in range(13)])
    fuse([frame(first, 0, seconds=-100.0)])
    node, camera = Health("fusion", ["front"], tally, 1.0).report(0.0, {})
    assert camera.values["identity_switches"] == "5"
    assert camera.values["clock_jumps"] == "1"


def test_a_frame_of_no_use_that_ends_a_warning_is_passed_on(world, model) -> None:
    tally = Tally()
    fuse = FuseStage(FusionEngine(model, FusionSettings(idle_timeout=1.0)), tally)
    strange = world.strange(5)
    last = fuse([frame(strange, step) for step in range(12)])[-1]
    warned = {
        f"track {name}" for name, v in zip(last.result.ids, last.result.verdicts, strict=True) if v.level
    }
    assert warned
    (late,) = fuse([frame(strange, 0, seconds=60.0, ids=("",) * 5)])
    told = {message.topic: message.data for message in fused_messages(late, NAMES)}
    _, statuses = parse_diagnostics(told[contract.OOD_WARNINGS])
    assert {status.name for status in statuses} == warned and {status.level for status in statuses} == {OK}
    assert tally.of("front")["dropped_empty_id"] == 5
