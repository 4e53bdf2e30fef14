"""`mean_pmf`: the deep ensemble, over views as well."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import SumFuser, WeightedSum
from lla_fusion_ros.fusion.measure import MeasuredViews


class MeanPmf(SumFuser):
    """pmf = (1 / LC) sum_lc softmax(g_lc).

    Cost O(CM) per view, state O(M). Robust and underconfident: evidence is averaged, never added up.
    """

    name = "mean_pmf"

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        return WeightedSum.one(np.ones(len(views)), views.mean_pmf)

    def predict(self, state: WeightedSum) -> np.ndarray:
        nothing = (state.count == 0)[:, None]
        return np.where(nothing, 1.0 / self.posterior.classes, state.mean())
