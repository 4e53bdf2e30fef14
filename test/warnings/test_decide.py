"""From p-values to warnings, levels and restarts."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.flow import HOLD, LIFE, decide, levels, raised_reasons
from lla_fusion_ros.warnings.result import Level
from lla_fusion_ros.warnings.state import Standing

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


def decisions(found: list[np.ndarray], shown_by_all: bool = True) -> list:
    """Of one track, view by view."""
    standing, out = Standing.nothing(1), []
    for view, p_values in enumerate(found, start=1):
        decision, standing = decide(p_values, np.array([view]), standing, RULES, lambda _: shown_by_all)
        out.append(decision)
    return out


def test_a_switch_stays_visible_is_counted_once_and_ends_once() -> None:
    found = decisions([p(), p(one_object=0.001)] + [p()] * 10)
    assert [bool(d.raised[0, 1]) for d in found] == [False] + [True] * (HOLD + 1) + [False] * (10 - HOLD)
    assert sum(int(d.switched[0]) for d in found) == sum(int(d.ended[0]) for d in found) == 1
    assert [int(d.restart[0]) for d in found] == [0, 1] + [0] * 10


def test_a_switch_that_not_all_cameras_show_is_told_but_does_not_restart_the_track() -> None:
    found = decisions([p(), p(one_object=0.001), p(one_object=0.001)], shown_by_all=False)
    assert found[-1].raised[0, 1] and not any(d.restart[0] for d in found)


def test_while_cameras_disagree_no_track_begins_again() -> None:
    found = decisions([p(), p(one_object=0.001, cameras_agree=0.001)])
    assert found[-1].raised[0].tolist() == [False, True, True, False] and not found[-1].restart[0]


def test_a_track_begins_again_when_the_last_camera_shows_the_switch() -> None:
    standing = Standing.nothing(1)
    restarts = []
    for view, shown in enumerate((False, False, True, True), start=1):
        decision, standing = decide(
            p(one_object=0.001), np.array([view]), standing, RULES, lambda _, shown=shown: shown
        )
        restarts.append(bool(decision.restart[0]))
    assert restarts == [False, False, True, False]
