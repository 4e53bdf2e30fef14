"""`reliability`: each view weighted by learned coefficients on its own quality features."""

from __future__ import annotations

from typing import Any

import numpy as np

from lla_fusion_ros.fusion.base import SMALLEST, Array, Scalar, Value, Values, WeightedSum, exp, softmax
from lla_fusion_ros.fusion.learn import Free
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES, MeasuredViews, quality_features
from lla_fusion_ros.fusion.quality import BY_ENTROPY, LARGEST_LOG_WEIGHT, RIDGE, QualityFuser
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews


class Reliability(QualityFuser):
    """w_t = exp(theta . f_t), s = sum w_t zc_t / sum w_t, pmf = softmax(s (sum w_t)^a e^-b).

    f_t are the quality features, standardised with the `center` and `scale` of the validation views; zc
    is the mean over networks of the mean-centred logits. Two running sums: cost O(C(D + M)) per view,
    state O(M). Use it where validation tracks show the conditions of the road; refit for other networks.
    """

    name = "reliability"
    scalars = {
        "a": Scalar(0.3, 0.0, 1.0),
        "b": Scalar(0.0, -4.0, 4.0),
    }
    vectors = ("theta", "center", "scale")  # in the order of QUALITY_FEATURES

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.value.setdefault("theta", np.array(BY_ENTROPY))

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        return quality_features(views), views.mean_centred

    def view_weight(self, features: Array) -> Array:
        """w_t of each view.  [t, features] -> [t]"""
        standard = (features - self.value["center"]) / self.value["scale"]
        return exp((standard @ self.value["theta"]).clip(-LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT))

    def sums(self, features: Array, centred: Array) -> WeightedSum:
        return WeightedSum.one(self.view_weight(features), centred)

    def predict(self, state: WeightedSum) -> Array:
        scale = state.weight.clip(min=SMALLEST) ** self.value["a"] * exp(-self.value["b"])
        return softmax(state.mean() * scale[:, None])

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value]:
        """Learn theta, a and b on validation tracks."""
        fuser, inputs = cls.standardised(posterior, tracks)

        def values(free: Free) -> dict[str, Any]:
            return {"theta": free["theta"], "a": free["a"].clip(0.0, 1.0), "b": free["b"]}

        def penalty(free: Free) -> Any:
            return RIDGE * (free["theta"] ** 2).sum()

        start = {"theta": [0.0] * len(QUALITY_FEATURES), "a": 0.3, "b": 0.0}
        return fuser.learn(inputs, tracks, start, values, penalty, iterations=100)
