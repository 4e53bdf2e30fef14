"""`log_linear`: log-linear pooling with weights that sum to one."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import SumFuser, Values, WeightedSum
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.pmf import softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior


class LogLinear(SumFuser):
    """pmf ~ prod_lc p_lc^w_lc, sum w_lc = 1 (eq. fusion_weight), w_lc = w_c / L.

    The value `weights` gives w_c per network (any positive scale); equal without it. Cost O(CM) per view,
    state O(M). Never surer than its surest view.
    """

    name = "log_linear"
    vectors = ("weights",)

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.weights = network_weights(self.name, self.vector.get("weights"), posterior.networks)

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        return WeightedSum.one(np.ones(len(views)), np.einsum("c,tcm->tm", self.weights, views.log_pmf))

    def predict(self, state: WeightedSum) -> np.ndarray:
        return softmax(state.mean())


def network_weights(fuser: str, weights: np.ndarray | None, networks: int) -> np.ndarray:
    """Weights of the networks that sum to one; equal where none are given.  [networks]"""
    if weights is None:
        return np.full(networks, 1.0 / networks)
    if len(weights) != networks:
        raise InputError(f"fuser '{fuser}' has {len(weights)} weights for {networks} networks")
    if (weights < 0).any() or weights.sum() <= 0:
        raise InputError(
            f"weights of fuser '{fuser}' are {weights.tolist()}, none may be negative, not all zero"
        )
    return weights / weights.sum()
