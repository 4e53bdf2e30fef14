"""`pool`: the tempered linear pool, the honest baseline without any Laplace in it."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import FLOOR, MOST_BY_SIZE, Scalar, SumFuser, WeightedSum, growth
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.pmf import entropy, softmax


class Pool(SumFuser):
    """s = ln(sum_t u_t p_t / sum_t u_t), pmf = softmax(s L^alpha / T).

    p_t is the mean over networks of the temperature-scaled pmfs (eq. 36), H_t its entropy, s_t the side of
    the view's box in image pixels: u_t = exp(-gamma H_t) (s_t / 20)^size. Cost O(CM) per view, state O(M).
    Use it where no posterior was fitted; what a Laplace fuser must beat.
    """

    name = "pool"
    scalars = {
        "gamma": Scalar(1.0, 0.0, 20.0),
        "alpha": Scalar(0.3, 0.0, 1.0),
        "temperature": Scalar(1.0, 0.05, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 10.0, log=True),
        "size": Scalar(0.0, 0.0, MOST_BY_SIZE),
    }

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        pmf = softmax(views.shifted / self.value["view_temperature"]).mean(axis=1)
        weight = np.exp(self.value["size"] * views.log_size - self.value["gamma"] * entropy(pmf))
        return WeightedSum.one(weight, pmf)

    def predict(self, state: WeightedSum) -> np.ndarray:
        scores = np.log(np.maximum(state.mean(), FLOOR))
        return softmax(scores * growth(state.count, self.value["alpha"], self.value["temperature"]))
