"""From a statistic to its p-value, the share of ordinary tracks that ever reach it, and to a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.types.errors import InputError

# Shares of ordinary tracks, largest first: the grid on which thresholds are kept.
RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0001)
FEWEST_COUNTED = 5  # objects must be beyond a threshold for it to be read off, not extrapolated
_LOG_RATES = np.log(RATES)  # falls from 0


@dataclass(frozen=True, slots=True)
class AlarmTable:
    """Thresholds of one statistic for stated false-alarm rates per track.

    Attributes:
        thresholds: the value that a share RATES[i] of ordinary tracks ever reaches, rising.  [rates]
        tracks: the number of tracks it was measured on.
    """

    thresholds: tuple[float, ...]
    tracks: int

    @classmethod
    def measure(cls, largest: np.ndarray, objects: np.ndarray | None = None) -> AlarmTable:
        """From the largest value that each ordinary track reaches in its life.  2 x [tracks]

        Rates too rare to be counted on so few objects follow an exponential tail, fitted to the mean excess
        over the 90% quantile. `objects` says which tracks show the same one, degraded again: they are more
        tracks, but not more evidence of what is rare. None: each shows another.
        """
        if len(largest) < 10 or not np.isfinite(largest).all():
            raise InputError(
                f"a threshold needs at least 10 finite values of ordinary tracks, not {len(largest)}"
            )
        count = len(largest if objects is None else np.unique(objects))
        start = float(np.quantile(largest, 0.9))
        excess = largest[largest >= start] - start
        slope = max(float(excess.mean()), 1e-6)
        thresholds: list[float] = []
        for rate in RATES:
            if rate * count >= FEWEST_COUNTED:
                value = float(np.quantile(largest, 1.0 - rate))
            else:
                value = start + slope * float(np.log(0.1 / rate))
            thresholds.append(max(value, thresholds[-1] + 1e-9) if thresholds else value)
        return cls(tuple(thresholds), len(largest))

    @classmethod
    def measure_worst(
        cls, largest: np.ndarray, conditions: np.ndarray, objects: np.ndarray | None = None
    ) -> AlarmTable:
        """The stated rates hold in each of the conditions, not just on average over them.  3 x [tracks]

        It rains on a whole drive: fewer alarms on sunny days would not help then. Conditions of less than 10
        tracks tell nothing by themselves; all tracks together are one condition, too.
        """
        every = np.ones(len(largest), bool)
        groups = [every] + [own for own in conditions == np.unique(conditions)[:, None] if own.sum() >= 10]
        tables = [cls.measure(largest[own], None if objects is None else objects[own]) for own in groups]
        return cls(tuple(np.max([table.thresholds for table in tables], axis=0).tolist()), len(largest))

    def check(self) -> None:
        """Refuse thresholds that are not one rising number for each of RATES."""
        values = np.asarray(self.thresholds)
        good = values.shape == (len(RATES),) and values.dtype.kind in "fi" and np.isfinite(values).all()
        if not good or (np.diff(values) < 0).any():
            raise InputError(f"the thresholds of a warning must be {len(RATES)} rising numbers")

    def at_least_odds(self) -> AlarmTable:
        """For a log-likelihood ratio: no threshold below ln(1 / rate).

        A ratio of 1 / rate is met by chance in a share `rate` of cases at most, so tracks that happen to be
        cleaner than the road must not make the test more nervous than that.
        """
        floored = (
            max(value, -float(np.log(rate))) for value, rate in zip(self.thresholds, RATES, strict=True)
        )
        return AlarmTable(tuple(floored), self.tracks)

    def threshold(self, rate: float) -> float:
        """The threshold for a false-alarm rate per track."""
        return float(np.interp(-np.log(rate), -_LOG_RATES, self.thresholds))

    def p_value(self, statistic: np.ndarray) -> np.ndarray:
        """The share of ordinary tracks that ever reach this value; 1 is nothing unusual.  [t]"""
        return np.exp(np.interp(statistic, self.thresholds, _LOG_RATES))


NEVER = AlarmTable((1e9,) * len(RATES), 0)  # no data to compare with: the warning is never raised
