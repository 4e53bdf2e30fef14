"""From p-values to warnings: false-alarm rates, hysteresis, levels, and which tracks begin again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.alarm import RATES
from lla_fusion_ros.warnings.result import (
    CAMERA_DISAGREEMENT,
    CANNOT_TELL,
    IDENTITY_SWITCH,
    OUT_OF_DISTRIBUTION,
    REASONS,
    Decision,
    Level,
)
from lla_fusion_ros.warnings.state import Standing

HYSTERESIS = 2.0  # a warning ends when the p-value is this many times the rate at which it began
ERROR_FACTOR = 0.1  # ten times rarer than a warning is an error
LIFE = 30  # views of the tracks that thresholds are measured on
RAREST = 1.001 * RATES[-1]  # no p-value is smaller than the last rate of an AlarmTable
HOLD = 5  # views for which an identity switch stays visible
UNKNOWN, UNREADABLE = REASONS.index(OUT_OF_DISTRIBUTION), REASONS.index(CANNOT_TELL)
SWITCH, DISAGREEMENT = REASONS.index(IDENTITY_SWITCH), REASONS.index(CAMERA_DISAGREEMENT)


def rates(settings: FusionSettings) -> dict[str, float]:
    """The false-alarm rate of each reason, in the order of REASONS.

    Unknown object and bad picture are two answers to one question, asked at one rate.
    """
    unknown = settings.ood_false_alarm
    numbers = unknown, settings.switch_false_alarm, settings.disagreement_false_alarm, unknown
    return {reason: float(rate) for reason, rate in zip(REASONS, numbers, strict=True)}


def decide(
    p_values: np.ndarray,
    views: np.ndarray,
    before: Standing,
    settings: FusionSettings,
    all_cameras_show: Callable[[int], bool],
) -> tuple[Decision, Standing]:
    """What to say of the tracks of a frame, and what to remember of it.

    A track begins again once all its cameras show the switch. Until then, and where cameras disagree, the
    newest view may be one side of a contradiction: to begin with it would show its class as if there were no
    other.
    p_values [t, reasons], views [t] fused so far; all_cameras_show: asked of a switched track, by position
    """
    raised = raised_reasons(p_values, views, before.warned, settings)
    found = raised[:, SWITCH].copy()
    new = found & (before.hold == 0)
    raised[:, SWITCH] = new | (before.hold > 0)  # a single frame is easily missed
    pending = found & (new | before.pending)
    restart = pending & ~raised[:, DISAGREEMENT] & settings.restart_on_switch
    for i in np.flatnonzero(restart).tolist():
        restart[i] = all_cameras_show(i)
    decision = Decision(
        raised=raised,
        level=levels(raised, p_values, settings),
        switched=raised[:, SWITCH] & ~before.warned[:, SWITCH],
        restart=restart,
        ended=np.logical_and(before.warned.any(axis=1), ~raised.any(axis=1)),
    )
    hold = np.where(new | restart, HOLD, np.maximum(before.hold - 1, 0))
    return decision, Standing(raised, hold, pending & ~restart)


def raised_reasons(
    p_values: np.ndarray, views: np.ndarray, warned: np.ndarray, settings: FusionSettings
) -> np.ndarray:
    """Which reasons hold now; one that held before ends only when its sign is clearly gone.

    The tests of the last few views get a new chance to err with every view: a track longer than LIFE is held
    to a rate that is as much smaller, so that the rate remains one per track. The out-of-distribution score
    settles instead of trying again. What is odd for a known object, but not for one in such a picture, is not
    called unknown: nobody can tell.
    p_values [t, reasons], views [t] fused so far, warned [t, reasons] with the last view -> [t, reasons]
    """
    limit = np.where(warned, HYSTERESIS, 1.0) * list(rates(settings).values())
    limit[:, [SWITCH, DISAGREEMENT]] *= np.minimum(1.0, LIFE / np.maximum(views, 1))[:, None]
    raised = p_values <= np.maximum(limit, RAREST)
    raised[:, [UNKNOWN, UNREADABLE]] &= (views >= settings.min_views)[:, None]
    raised[:, UNREADABLE] &= ~raised[:, UNKNOWN]
    return raised


def levels(raised: np.ndarray, p_values: np.ndarray, settings: FusionSettings) -> np.ndarray:
    """OK, WARN, or ERROR: a switch, or ten times rarer than its rate; a bad picture is never an error.

    2 x [t, reasons] -> [t] int
    """
    grave = raised & (p_values <= ERROR_FACTOR * np.array(list(rates(settings).values())))
    grave[:, SWITCH] = raised[:, SWITCH]
    grave[:, UNREADABLE] = False
    return np.where(grave.any(axis=1), Level.ERROR, np.where(raised.any(axis=1), Level.WARN, Level.OK))
