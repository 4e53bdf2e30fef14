"""`pool`: the tempered linear pool, the honest baseline without any Laplace in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import (
    FLOOR,
    MOST_BY_SIZE,
    Array,
    Scalar,
    Value,
    WeightedSum,
    exp,
    growth,
    log,
    softmax,
)
from lla_fusion_ros.fusion.learn import Free, LearnedFuser, held
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews


class Pool(LearnedFuser):
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

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        return views.shifted, views.log_size

    def sums(self, shifted: Array, log_size: Array) -> WeightedSum:
        v = self.value
        pmf = softmax(shifted / v["view_temperature"]).mean(axis=1)
        entropy = -(pmf * log(pmf.clip(min=FLOOR))).sum(-1)
        return WeightedSum.one(exp(v["size"] * log_size - v["gamma"] * entropy), pmf)

    def predict(self, state: WeightedSum) -> Array:
        v = self.value
        scores = log(state.mean().clip(min=FLOOR))
        return softmax(scores * growth(state.count, v["alpha"], v["temperature"]))

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value]:
        """Learn all numbers at once on validation tracks."""
        fuser = cls(posterior)

        def values(free: Free) -> dict[str, Any]:
            return {name: cls.bounded(name, number) for name, number in free.items()}

        usual = {"gamma": 1.0, "alpha": 0.2, "temperature": 0.6, "view_temperature": 1.6, "size": 1.0}
        start = {name: cls.freed(name, value) for name, value in usual.items()}
        inputs = fuser.inputs(views_of(posterior, tracks))
        return fuser.learn(inputs, tracks, start, values, lambda free: held(free, start), 60)
