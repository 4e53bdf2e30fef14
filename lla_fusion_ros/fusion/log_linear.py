"""`log_linear`: log-linear pooling with weights that sum to one."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import SumFuser, Values, WeightedSum
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import softmax


class LogLinear(SumFuser):
    """pmf ~ prod_lc p_lc^w_lc, sum w_lc = 1 (eq. 7), w_lc = w_c / L.

    The value `weights` gives w_c per network (any positive scale); equal without it. Cost O(CM) per view,
    state O(M). Never surer than its surest view.
    """

    name = "log_linear"
    vectors = ("weights",)

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.weights = self.network_weights()

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        return WeightedSum.one(np.ones(len(views)), (self.weights[:, None] * views.log_pmf).sum(axis=1))

    def predict(self, state: WeightedSum) -> np.ndarray:
        return softmax(state.mean())
