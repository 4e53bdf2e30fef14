"""`reliable_pool`: the tempered linear pool with learned weights of the views; it contains `pool`."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import FitTracks, Scalar, Value, WeightedSum, growth
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.reliability import Reliability
from lla_fusion_ros.pmf import softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior


class ReliablePool(Reliability):
    """w_t = exp(theta . f_t), s = ln(sum_t w_t p_t / sum_t w_t), pmf = softmax(s L^alpha / T).

    p_t is the mean over networks of the temperature-scaled pmfs, f_t the standardised signs of quality of
    `reliability`, the Laplace variance among them. A high view temperature makes the linear pool act like a
    log-linear one, a low one keeps it robust against a confident wrong view: the fit chooses. Two running
    sums: cost O(C(D + M)) per view beside the variance of the top class, state O(M).
    """

    name = "reliable_pool"
    scalars = {
        "alpha": Scalar(0.1, 0.0, 1.0),
        "temperature": Scalar(1.0, 0.02, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 20.0, log=True),
    }
    options = {"prior": Scalar(0.0, 0.0, 1e4)}  # of the Laplace variance among the signs; 0: the posterior's

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
        """Learn theta, alpha and both temperatures on validation tracks (least NLL)."""
        from lla_fusion_ros.fusion.fitting.reliable_pool import fit_reliable_pool  # torch only where fitted

        return fit_reliable_pool(posterior, tracks)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        pmf = views.tempered_pmf(self.value["view_temperature"])
        return WeightedSum.one(self.view_weight(views, self.value["prior"] or None), pmf)

    def predict(self, state: WeightedSum) -> np.ndarray:
        scores = np.log(np.maximum(state.mean(), FLOOR))
        return softmax(scores * growth(state.count, self.value["alpha"], self.value["temperature"]))
