"""A change of the class is followed, a glitch is not."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.result import IDENTITY_SWITCH, Level
from support.feature_world import CLASSES, WorldModel

START, TENTH = 10**12, 10**8
COUNT, STEPS = 20, 40


@pytest.fixture(scope="module")
def model(world) -> WorldModel:
    return WorldModel(
        world, fit_warnings(world.posterior, world.known(150), world.strange(80)), "evidence_pool"
    )


@pytest.fixture(scope="module")
def sides(world):
    """Long tracks of one class, and of another."""
    return [world.tracks(np.full(COUNT, kind), steps=STEPS) for kind in (0, CLASSES - 1)]


def run(model, sides, share, settings=None):
    """All frames; `share(step)` of each view is that of the second side."""
    engine = FusionEngine(model, settings or FusionSettings())
    ids = [f"t{i}" for i in range(COUNT)]
    results = []
    for step in range(STEPS):
        part, (one, other) = share(step), (side.views_at(step) for side in sides)
        mixed = (
            (1 - part) * a + part * b
            for a, b in zip((one.logits, one.features), (other.logits, other.features), strict=True)
        )
        results.append(engine.update(Observation("front", START + step * TENTH, ids, Views(*mixed))))
    return results


def test_one_odd_frame_a_second_restarts_nothing_and_is_never_shown_as_sure(model, sides) -> None:
    results = run(model, sides, lambda step: float(step % 10 == 5))
    assert not any(result.restarted for result in results)
    assert max(result.pmf[:, CLASSES - 1].max() for result in results) < 0.9
    assert (results[-1].pmf.argmax(axis=1) == 0).all()


def test_an_abrupt_change_is_followed_within_five_frames(model, sides) -> None:
    results = run(model, sides, lambda step: float(step >= 20))
    assert (results[24].pmf.argmax(axis=1) == CLASSES - 1).mean() >= 0.95
    assert any(IDENTITY_SWITCH in v.reasons and v.level == Level.ERROR for v in results[23].verdicts)


def test_a_change_over_many_frames_is_followed_when_it_has_ended(model, sides) -> None:
    results = run(model, sides, lambda step: np.clip((step - 10) / 15, 0, 1))
    assert (results[-1].pmf.argmax(axis=1) == CLASSES - 1).mean() >= 0.95


def test_from_one_changing_class_to_another_is_a_class_change_and_no_error(model, sides) -> None:
    for named in ("all", f"0,{CLASSES - 1}"):
        results = run(model, sides, lambda step: float(step >= 20), FusionSettings(changing_classes=named))
        assert {name for result in results for name in result.changed} == {f"t{i}" for i in range(COUNT)}
        assert not any(IDENTITY_SWITCH in v.reasons for result in results for v in result.verdicts)
        assert (results[24].pmf.argmax(axis=1) == CLASSES - 1).all()
        assert not any(result.switched for result in results)


@pytest.mark.parametrize("named", ["0", f"{CLASSES - 1}", "1,2", ""])
def test_a_change_from_or_to_another_class_remains_an_identity_switch(model, sides, named) -> None:
    results = run(model, sides, lambda step: float(step >= 20), FusionSettings(changing_classes=named))
    assert not any(result.changed for result in results)
    assert {name for result in results for name in result.switched} == {f"t{i}" for i in range(COUNT)}


def test_classes_that_do_not_change_are_fused_as_if_none_did(model, sides) -> None:
    """What traffic lights do must not weaken signs."""
    usual, lights = (
        run(model, sides, lambda step: 0.0, FusionSettings(fuser="mean_pmf", changing_classes=named))
        for named in ("", f"1,{CLASSES - 1}")
    )
    for one, other in zip(usual, lights, strict=True):
        np.testing.assert_array_equal(one.pmf, other.pmf)
