"""Tracks of several cameras that are one object: joined, parted, and joined again."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FrameResult, FusionEngine, Observation
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.fusion.base import SumFuser
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.result import CAMERA_DISAGREEMENT, IDENTITY_SWITCH

SECOND = 1_000_000_000
START = 1_000 * SECOND
CAMERAS = ("left", "right")
PAIR = ("left/1", "right/7")
JOINED = dict.fromkeys(PAIR, PAIR)


def look(engine: FusionEngine, tracks, step: int, names=PAIR, groups=None, row: int = 0) -> FrameResult:
    """Cameras look in turn; `tracks` has a row for each or one for both."""
    side = step % 2
    row = min(row if len(tracks.label) == 1 else side, len(tracks.label) - 1)
    views = tracks.views_at(step % tracks.logits.shape[1]).take(slice(row, row + 1))
    stamp = START + step * SECOND // 20
    return engine.update(Observation(CAMERAS[side], stamp, [names[side]], views, groups or {}))


@pytest.mark.parametrize(
    "name", sorted(name for name, each in fusers().items() if issubclass(each, SumFuser))
)
def test_joined_tracks_are_fused_as_if_they_had_had_one_id_from_the_start(world, model, name) -> None:
    tracks = world.known(1)
    settings = FusionSettings(fuser=name, restart_on_switch=False)
    joined, one_id = FusionEngine(model, settings), FusionEngine(model, settings)
    for step in range(16):
        result = look(joined, tracks, step, groups=JOINED if step >= 8 else {})
        expected = look(one_id, tracks, step, names=("x", "x"))
        if step >= 8:
            np.testing.assert_allclose(result.pmf, expected.pmf, rtol=1e-9)
            np.testing.assert_allclose(
                result.verdicts.p_values[:, 2], expected.verdicts.p_values[:, 2], rtol=1e-9
            )
            assert result.ids == ("left/1",) and result.members == (PAIR,)
            assert result.verdicts[0].views == expected.verdicts[0].views


@pytest.mark.parametrize("name", sorted(fusers()))
def test_parted_tracks_go_on_with_exactly_their_own_evidence(world, model, name) -> None:
    tracks = world.known(2)
    settings = FusionSettings(fuser=name, window=4, restart_on_switch=False)
    wrongly, never = FusionEngine(model, settings), FusionEngine(model, settings)
    for step in range(20):
        result = look(wrongly, tracks, step, groups=JOINED if 6 <= step < 14 else {})
        expected = look(never, tracks, step)
        np.testing.assert_array_equal(result.own, expected.pmf)
        assert np.isfinite(result.pmf).all() and result.pmf.sum() == pytest.approx(1)
    np.testing.assert_array_equal(result.pmf, expected.pmf)
    assert result.verdicts[0].views == expected.verdicts[0].views


def test_cameras_that_see_different_classes_disagree_about_the_joined_object(world, model) -> None:
    both = world.tracks(np.array([0, 1]))
    engine = FusionEngine(model, FusionSettings(restart_on_switch=False))
    reasons = set()
    for step in range(24):
        reasons |= set(look(engine, both, step, groups=JOINED).verdicts[0].reasons)
    assert CAMERA_DISAGREEMENT in reasons


def test_a_warning_of_a_track_ends_when_another_track_speaks_for_it(world, model) -> None:
    strange = world.strange(1)
    engine = FusionEngine(model, FusionSettings(restart_on_switch=False, ood_false_alarm=0.5, min_views=1))
    for step in range(16):
        look(engine, strange, step)
    cleared = look(engine, strange, 16, groups=JOINED).cleared
    assert cleared == ("right/7",)  # the object goes on as left/1


def test_a_track_lives_as_long_as_its_object_is_seen_by_any_camera(world, model) -> None:
    tracks = world.known(1)
    engine = FusionEngine(model, FusionSettings(idle_timeout=1.0, restart_on_switch=False))
    look(engine, tracks, 0)
    for step in range(1, 61, 2):  # the right camera alone, for three seconds
        result = look(engine, tracks, step, groups=JOINED)
    assert result.ids == ("left/1",) and result.verdicts[0].views == {"left": 1, "right": 30}


def test_a_light_that_changes_for_both_cameras_is_told_once_and_no_disagreement(world, model) -> None:
    before, after = world.tracks(np.zeros(1, int)), world.tracks(np.full(1, 3))
    engine = FusionEngine(model, FusionSettings(changing_classes="all"))
    reasons, changed = set(), []
    for step in range(60):
        result = look(engine, before if step < 30 else after, step, groups=JOINED)
        reasons |= set(result.verdicts[0].reasons)
        changed += result.changed
        if step >= 31:  # both have seen it
            assert result.pmf[0].argmax() == 3
    assert changed == ["left/1"]
    assert not {CAMERA_DISAGREEMENT, IDENTITY_SWITCH} & reasons
