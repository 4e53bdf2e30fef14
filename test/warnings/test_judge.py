"""From shares of ordinary tracks to warnings and levels."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.warnings.judge import LIFE, levels, raised_reasons
from lla_fusion_ros.warnings.monitor import Findings
from lla_fusion_ros.warnings.verdict import Level

RULES = FusionSettings(
    ood_false_alarm=0.02, switch_false_alarm=0.01, disagreement_false_alarm=0.01, min_views=3
)
NOTHING = np.zeros((1, 3), bool)


def findings(familiarity: float = 1.0, consistency: float = 1.0, agreement: float = 1.0) -> Findings:
    return Findings(np.array([[0.0, 0.0, familiarity, consistency, agreement]]))


def raised(found: Findings, views: int = 10, warned: np.ndarray = NOTHING) -> list[bool]:
    return raised_reasons(found, np.array([views]), warned, RULES)[0].tolist()


def test_a_share_at_the_rate_raises_its_reason_and_no_other() -> None:
    assert raised(findings(familiarity=0.02)) == [True, False, False]
    assert raised(findings(consistency=0.01)) == [False, True, False]
    assert raised(findings(agreement=0.01)) == [False, False, True]
    assert raised(findings(0.021, 0.011, 0.011)) == [False, False, False]


def test_a_stranger_needs_enough_views() -> None:
    assert raised(findings(familiarity=0.001), views=2) == [False, False, False]
    assert raised(findings(familiarity=0.001), views=3) == [True, False, False]


def test_a_warning_ends_only_when_its_sign_is_clearly_gone() -> None:
    warned = np.array([[True, False, False]])
    assert raised(findings(familiarity=0.03), warned=warned)[0]
    assert not raised(findings(familiarity=0.05), warned=warned)[0]


def test_a_long_track_is_held_to_a_smaller_rate_per_view() -> None:
    assert raised(findings(consistency=0.01), views=LIFE)[1]
    assert not raised(findings(consistency=0.01), views=10 * LIFE)[1]
    assert raised(findings(consistency=0.001), views=10 * LIFE)[1]
    assert raised(findings(familiarity=0.02), views=10 * LIFE)[0]


def test_the_strongest_sign_is_raised_however_long_the_track() -> None:
    strongest = 1.0001e-4  # what an AlarmTable gives at most, up to rounding
    assert raised(findings(consistency=strongest, agreement=strongest), views=1_000_000)[1:] == [True, True]


def test_ten_times_rarer_is_an_error_and_a_switch_always_is() -> None:
    for found, level in (
        (findings(), Level.OK),
        (findings(familiarity=0.01), Level.WARN),
        (findings(familiarity=0.002), Level.ERROR),
        (findings(agreement=0.009), Level.WARN),
        (findings(consistency=0.009), Level.ERROR),
    ):
        now = raised_reasons(found, np.array([10]), NOTHING, RULES)
        assert levels(now, found.shares, RULES)[0] == level
