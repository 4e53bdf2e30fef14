"""From findings to warnings: thresholds, hysteresis, levels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.warnings.alarm import RATES
from lla_fusion_ros.warnings.monitor import Findings
from lla_fusion_ros.warnings.verdict import REASONS, Level

HYSTERESIS = 2.0  # a warning ends when the share is this many times the rate at which it began
ERROR_FACTOR = 0.1  # ten times rarer than a warning is an error
LIFE = 30  # views of the tracks that thresholds are measured on
RAREST = 1.001 * RATES[-1]  # no share is smaller than the last rate of an AlarmTable
HOLD = 5  # views for which an identity switch stays visible after the track began anew


def rates(settings: FusionSettings) -> np.ndarray:
    """The false-alarm rate of each reason, in the order of REASONS.  [reasons], read-only"""
    return _limits(*_numbers(settings))[0]


def thresholds(settings: FusionSettings) -> dict[str, float]:
    """The false-alarm rate of each reason, by name."""
    return dict(zip(REASONS, _numbers(settings), strict=True))


def _numbers(settings: FusionSettings) -> tuple[float, float, float]:
    return (
        float(settings.ood_false_alarm),
        float(settings.switch_false_alarm),
        float(settings.disagreement_false_alarm),
    )


@lru_cache(maxsize=8)  # asked for several times a frame
def _limits(*numbers: float) -> tuple[np.ndarray, np.ndarray]:
    """The rates [reasons], and the largest share at which each reason could hold at all [1, reasons]."""
    rate = np.array(numbers)
    highest = np.maximum(HYSTERESIS * rate, RAREST)[None]  # of one track, numpy need not broadcast
    rate.flags.writeable = highest.flags.writeable = False
    return rate, highest


def raised_reasons(
    findings: Findings, views: np.ndarray, warned: np.ndarray, settings: FusionSettings
) -> np.ndarray:
    """Which reasons hold now; one that held before ends only when its sign is clearly gone.

    The tests of the last few views get a new chance to err with every view: a track longer than LIFE is held
    to a rate that is as much smaller, so that the rate remains one per track. The out-of-distribution score
    settles instead of trying again.
    views [t] fused so far, warned [t, reasons] bool as of the last view -> [t, reasons] bool
    """
    rate, highest = _limits(*_numbers(settings))
    shares = findings.shares
    possible = shares <= highest  # no limit below is higher
    if not np.count_nonzero(possible):  # most frames end here
        return possible
    limit = np.where(warned, HYSTERESIS, 1.0) * rate
    limit[:, 1:] *= np.minimum(1.0, LIFE / np.maximum(views, 1))[:, None]
    raised = shares <= np.maximum(limit, RAREST)
    raised[:, 0] &= views >= settings.min_views
    return raised


def levels(raised: np.ndarray, shares: np.ndarray, settings: FusionSettings) -> np.ndarray:
    """OK, WARN, or ERROR where a raised reason is ten times rarer than its rate.  [t] int"""
    if not np.count_nonzero(raised):
        return np.zeros(len(raised), np.int64)  # Level.OK
    grave = raised & (shares <= ERROR_FACTOR * rates(settings))
    grave[:, REASONS.index("identity_switch")] = raised[:, REASONS.index("identity_switch")]
    return np.where(grave.any(axis=1), Level.ERROR, np.where(raised.any(axis=1), Level.WARN, Level.OK))
