"""`wls_robust`: weighted least squares with what breaks it over time repaired."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import SMALLEST, Scalar, SumFuser, growth
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.pmf import softmax


@dataclass(frozen=True, slots=True)
class WlsSums:
    """Sums over views and networks.

    Attributes:
        count: L, the number of views.                                      [tracks]
        information: sum of u / V.                                          [tracks, classes]
        evidence: sum of u zc / V.                                          [tracks, classes]
    """

    count: np.ndarray
    information: np.ndarray
    evidence: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, classes: int) -> WlsSums:
        return cls(np.zeros(tracks), np.zeros((tracks, classes)), np.zeros((tracks, classes)))

    @classmethod
    def one(cls, views: MeasuredViews, gamma: float, prior: float) -> WlsSums:
        """The contribution of one view of each track."""
        weight = np.exp(-gamma * views.entropy)[:, None]
        precision, evidence = views.weighed_under(prior)
        return cls(np.ones(len(views)), weight * precision, weight * evidence)

    def scores(self) -> np.ndarray:
        """s_m of `WlsRobust`.  [tracks, classes]"""
        return self.evidence / np.maximum(self.information, SMALLEST)


class WlsRobust(SumFuser):
    """s_m = sum_tc u_t zc_tcm / V_tcm / sum_tc u_t / V_tcm, pmf = softmax(s L^alpha / T).

    Three repairs of eq. 25: mean-centred logits instead of the max shift; entropy
    weights u_t = exp(-gamma H_t) and variances V under a small prior of their own, so that sure views weigh
    more; L^alpha / T, so that evidence adds up. Views count as independent in the weights, which keeps them
    all positive. Cost O(CMD^2) per view for the variances, state O(M).
    """

    name = "wls_robust"
    scalars = {
        "gamma": Scalar(1.0, 0.0, 20.0),
        "alpha": Scalar(0.3, 0.0, 1.0),
        "temperature": Scalar(1.0, 0.05, 20.0, log=True),
    }
    options = {"prior": Scalar(1e-3, 1e-8, 1e4)}  # lambda_w, the prior precision used for the weights only

    def initial(self, tracks: int) -> WlsSums:
        return WlsSums.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WlsSums:
        return WlsSums.one(views, self.value["gamma"], self.value["prior"])

    def predict(self, state: WlsSums) -> np.ndarray:
        scale = growth(state.count, self.value["alpha"], self.value["temperature"])
        return softmax(state.scores() * scale)
