"""`last`: the newest view alone, as most trackers show it today."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.types.views import Others, Views


@dataclass(frozen=True, slots=True)
class LastState:
    """The pmf of the newest view.  [tracks, classes]"""

    pmf: np.ndarray


class Last(Fuser):
    """pmf = mean over networks of softmax(g_lc) of the view that came last (eq. 3).

    Cost O(CM). For comparison: every flicker of the classifier shows.
    """

    name = "last"

    def initial(self, tracks: int) -> LastState:
        return LastState(np.full((tracks, self.posterior.classes), 1.0 / self.posterior.classes))

    def update(self, state: LastState, views: Views) -> LastState:
        return LastState(self.measured(views, state).mean_pmf)

    def predict(self, state: LastState) -> np.ndarray:
        return state.pmf

    def predict_joined(self, state: LastState, rows: np.ndarray, others: Others) -> np.ndarray:
        return state.pmf[rows]  # those of the newest views
