"""Views of many tracks through the warnings: what is found, when tracks are asked, and what is decided."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.flow import (
    HOLD,
    LIFE,
    TrackWarnings,
    decide,
    due_for_scores,
    levels,
    raised_reasons,
)
from lla_fusion_ros.warnings.model import USUAL_CHANGE, WarningModel
from lla_fusion_ros.warnings.result import Level
from lla_fusion_ros.warnings.state import Standing
from support.feature_world import FeatureWorld
from support.warned_tracks import scores_along, scores_of_frame


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


@pytest.fixture(scope="module")
def model(world) -> WarningModel:
    return fit_warnings(world.posterior, world.known(150), world.strange(80))


def test_strangers_score_higher_than_known_objects(world, model) -> None:
    known = scores_along(world, model, world.known(60))[-1].ood_score
    strange = scores_along(world, model, world.strange(60))[-1].ood_score
    assert np.mean(strange[:, None] > known[None, :]) > 0.95
    assert model.quality["auroc_combined"] > 0.95


def test_cameras_that_see_different_classes_are_found(world, model) -> None:
    first, second = world.known(100), world.known(100)
    other = first.label != second.label
    warnings = TrackWarnings(model, USUAL_CHANGE, world.posterior, 100)
    for step in range(6):
        for camera, tracks in enumerate((first, second)):
            scores = scores_of_frame(warnings, world, tracks, step, camera, count=2 * step + camera + 1)
    agree = scores.p_values[:, 2]
    assert np.mean(agree[other] <= 0.01) > 0.9
    assert np.mean(agree[~other] <= 0.01) < 0.1


def _asks(views, asked, frames):
    """Let every track be seen in each frame; in which frames each is asked about, by number of its view."""
    views, asked = np.array(views), np.array(asked)
    found = [[] for _ in views]
    for _ in range(frames):
        views += 1
        about = np.flatnonzero(due_for_scores(views, asked))
        asked[about] = views[about]
        for track in about:
            found[track].append(int(views[track]))
    return found


def test_a_track_alone_is_asked_about_ever_more_rarely_but_never_forgotten():
    (asked,) = _asks([0], [0], 20_000)
    assert asked[:12] == [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40]
    gaps = np.diff(asked)
    assert gaps.max() == 30 and (gaps[5:10] == 5).all() and (gaps[-100:] == 30).all()


def test_tracks_of_one_frame_fall_into_step():
    together = _asks([0, 6, 13, 27], [0, 5, 11, 24], 200)
    begun = np.array([0, 6, 13, 27])
    frames = [set((np.array(views) - first).tolist()) for views, first in zip(together, begun, strict=True)]
    last = [{frame for frame in each if frame > 150} for each in frames]
    assert len(set.union(*last)) <= 4  # about one frame in 25 asks, for all of them
    for views in together:
        waited, later = np.diff(views), np.array(views[1:])
        assert (waited <= np.where(later <= 5, 1, 5 * np.clip(later // 30, 1, 6))).all()


def test_a_frame_of_nobody_asks_nobody():
    assert len(due_for_scores(np.zeros(0, int), np.zeros(0, int))) == 0


# From p-values to warnings and levels.
RULES = FusionSettings(
    ood_false_alarm=0.02, switch_false_alarm=0.01, disagreement_false_alarm=0.01, min_views=3
)
NOTHING = np.zeros((1, 4), bool)


def p(
    known: float = 1.0, one_object: float = 1.0, cameras_agree: float = 1.0, readable: float = 1.0
) -> np.ndarray:
    return np.array([[known, one_object, cameras_agree, readable]])


def raised(found: np.ndarray, views: int = 10, warned: np.ndarray = NOTHING) -> list[bool]:
    return raised_reasons(found, np.array([views]), warned, RULES)[0].tolist()


def test_a_p_value_at_the_rate_raises_its_reason_and_no_other() -> None:
    assert raised(p(known=0.02)) == [True, False, False, False]
    assert raised(p(one_object=0.01)) == [False, True, False, False]
    assert raised(p(cameras_agree=0.01)) == [False, False, True, False]
    assert raised(p(0.021, 0.011, 0.011)) == [False, False, False, False]


def test_a_stranger_needs_enough_views() -> None:
    assert raised(p(known=0.001), views=2) == [False, False, False, False]
    assert raised(p(known=0.001), views=3) == [True, False, False, False]


def test_what_bad_pictures_explain_is_not_called_unknown() -> None:
    assert raised(p(known=0.5, readable=0.01)) == [False, False, False, True]
    assert raised(p(known=0.01, readable=0.001)) == [True, False, False, False]
    assert raised(p(readable=0.01), views=2) == [False, False, False, False]
    assert raised(p(readable=0.021)) == [False, False, False, False]


def test_a_warning_ends_only_when_its_sign_is_clearly_gone() -> None:
    warned = np.array([[True, False, False, False]])
    assert raised(p(known=0.03), warned=warned)[0]
    assert not raised(p(known=0.05), warned=warned)[0]


def test_a_long_track_is_held_to_a_smaller_rate_per_view() -> None:
    assert raised(p(one_object=0.01), views=LIFE)[1]
    assert not raised(p(one_object=0.01), views=10 * LIFE)[1]
    assert raised(p(one_object=0.001), views=10 * LIFE)[1]
    assert raised(p(known=0.02), views=10 * LIFE)[0]


def test_the_strongest_sign_is_raised_however_long_the_track() -> None:
    strongest = 1.0001e-4  # what an AlarmTable gives at least, up to rounding
    assert raised(p(one_object=strongest, cameras_agree=strongest), views=1_000_000)[1:3] == [True, True]


def test_ten_times_rarer_is_an_error_and_a_switch_always_is() -> None:
    for found, level in (
        (p(), Level.OK),
        (p(known=0.01), Level.WARN),
        (p(known=0.002), Level.ERROR),
        (p(cameras_agree=0.009), Level.WARN),
        (p(readable=0.0001), Level.WARN),
        (p(one_object=0.009), Level.ERROR),
    ):
        now = raised_reasons(found, np.array([10]), NOTHING, RULES)
        assert levels(now, found, RULES)[0] == level


TENTH = 100_000_000


def decisions(found: list[np.ndarray], class_change: bool = False, nothing: tuple[int, ...] = ()) -> list:
    """Of one track, view by view."""
    standing, out = Standing.nothing(1), []
    for view, p_values in enumerate(found, start=1):
        change, empty = np.array([class_change]), np.array([view in nothing])
        decision, standing = decide(p_values, np.array([view]), standing, RULES, view * TENTH, change, empty)
        out.append(decision)
    return out


def test_a_switch_stays_visible_for_a_second_is_counted_once_and_ends_once() -> None:
    found = decisions([p(), p(one_object=0.001)] + [p()] * 14)
    frames = HOLD // TENTH
    assert [bool(d.raised[0, 1]) for d in found] == [False] + [True] * frames + [False] * (15 - frames)
    assert sum(int(d.switched[0]) for d in found) == sum(int(d.ended[0]) for d in found) == 1


def test_from_one_changing_class_to_another_nothing_is_warned_of() -> None:
    assert not any(d.raised.any() for d in decisions([p(), p(one_object=0.001)], class_change=True))


def test_while_cameras_disagree_there_is_no_switch() -> None:
    found = decisions([p(), p(one_object=0.001, cameras_agree=0.001)])
    assert found[-1].raised[0].tolist() == [False, False, True, False, False]


def test_where_nothing_is_there_it_is_warned_of_as_long_as_that_leads() -> None:
    found = decisions([p()] * 3, nothing=(1, 2))
    assert [each.raised[0].tolist() for each in found] == [[False] * 4 + [on] for on in (True, True, False)]
    assert [int(each.level[0]) for each in found] == [Level.WARN, Level.WARN, Level.OK]
    assert [bool(each.ended[0]) for each in found] == [False, False, True]
