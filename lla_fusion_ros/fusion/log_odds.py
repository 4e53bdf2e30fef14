"""`log_odds`: summed binary log-odds of each view's most probable class, as Autoware fuses cameras."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import SumFuser
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.pmf import softmax

SUREST = 1e-6  # p is kept within [SUREST, 1 - SUREST], so that one view cannot decide for ever


@dataclass(frozen=True, slots=True)
class LogOdds:
    """Summed log-odds of each class.  [tracks, classes]"""

    total: np.ndarray


class LogOddsFuser(SumFuser):
    """s_m = sum over the views whose most probable class is m of ln(p / (1 - p)); pmf = softmax(s).

    Cost O(CM) per view, state O(M). What a vehicle runs today; all but the first class of a view is
    thrown away, and correlated frames count as if independent.
    """

    name = "log_odds"

    def initial(self, tracks: int) -> LogOdds:
        return LogOdds(np.zeros((tracks, self.posterior.classes)))

    def contribution(self, views: MeasuredViews) -> LogOdds:
        total = np.zeros((len(views), self.posterior.classes))
        sure = np.clip(views.mean_pmf.max(axis=-1), SUREST, 1.0 - SUREST)
        total[np.arange(len(views)), views.top] = np.log(sure / (1.0 - sure))
        return LogOdds(total)

    def predict(self, state: LogOdds) -> np.ndarray:
        return softmax(state.total)
