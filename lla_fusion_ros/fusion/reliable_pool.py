"""`reliable_pool`: the tempered linear pool with learned weights of the views; it contains `pool`."""

from __future__ import annotations

from typing import Any

import numpy as np

from lla_fusion_ros.fusion.base import FLOOR, Array, Scalar, Value, WeightedSum, growth, log, softmax
from lla_fusion_ros.fusion.learn import Free
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES, MeasuredViews, quality_features
from lla_fusion_ros.fusion.quality import BY_ENTROPY, RIDGE, VARIANCE_PRIOR
from lla_fusion_ros.fusion.reliability import Reliability
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews


class ReliablePool(Reliability):
    """w_t = exp(theta . f_t), s = ln(sum_t w_t p_t / sum_t w_t), pmf = softmax(s L^alpha / T).

    p_t is the mean over networks of the temperature-scaled pmfs, f_t the standardised quality features of
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
    options = {"prior": Scalar(0.0, 0.0, 1e4)}  # of the variance among the features; 0: the posterior's

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        return quality_features(views, self.value["prior"] or None), views.shifted

    def sums(self, features: Array, shifted: Array) -> WeightedSum:
        pmf = softmax(shifted / self.value["view_temperature"]).mean(axis=1)
        return WeightedSum.one(self.view_weight(features), pmf)

    def predict(self, state: WeightedSum) -> Array:
        scores = log(state.mean().clip(min=FLOOR))
        return softmax(scores * growth(state.count, self.value["alpha"], self.value["temperature"]))

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value]:
        """Learn theta, alpha and both temperatures on validation tracks.

        The ridge spares the coefficient of entropy: what it shrinks towards is `pool`, not equal weights.
        """
        fuser, inputs = cls.standardised(posterior, tracks, prior=VARIANCE_PRIOR)
        entropy = QUALITY_FEATURES.index("entropy")

        def values(free: Free) -> dict[str, Any]:
            temperature, view_temperature = free["log_temperatures"].unbind()
            return {
                "theta": free["theta"],
                "alpha": free["alpha"].clip(0.0, 1.0),
                "temperature": cls.within_bounds("temperature", temperature),
                "view_temperature": cls.within_bounds("view_temperature", view_temperature),
            }

        def penalty(free: Free) -> Any:
            return RIDGE * ((free["theta"] ** 2).sum() - free["theta"][entropy] ** 2)

        start = {"theta": BY_ENTROPY, "alpha": 0.1, "log_temperatures": [0.0, 0.0]}
        return fuser.learn(inputs, tracks, start, values, penalty, iterations=60)
