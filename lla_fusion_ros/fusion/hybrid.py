"""`hybrid`: a log-linear mix of `wls_robust` and the tempered `ella_mixture`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import FLOOR, SMALLEST, Scalar, SumFuser, growth
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.wls_robust import WlsSums
from lla_fusion_ros.types.pmf import entropy, softmax


@dataclass(frozen=True, slots=True)
class HybridState:
    """The sums of `wls_robust` (first three) and of `ella_mixture` (last two), over the same views."""

    count: np.ndarray  # [tracks]
    information: np.ndarray  # [tracks, classes]
    evidence: np.ndarray  # [tracks, classes]
    weight: np.ndarray  # [tracks]
    mass: np.ndarray  # [tracks, classes]


class Hybrid(SumFuser):
    """pmf = softmax((w s_wls / T_1 + (1 - w) s_ella / T_2) L^alpha).

    Averages of logits and averages of probabilities err differently: the one trusts a sure view, the other
    survives a confident wrong one. Cost O(CMD^2) per view for the variances, state O(M).
    """

    name = "hybrid"
    scalars = {
        "gamma": Scalar(1.0, 0.0, 20.0),
        "mix": Scalar(0.5, 0.0, 1.0),
        "wls_temperature": Scalar(1.0, 0.05, 20.0, log=True),
        "ella_temperature": Scalar(1.0, 0.05, 20.0, log=True),
        "alpha": Scalar(0.3, 0.0, 1.0),
    }
    options = {"prior": Scalar(1e-3, 1e-8, 1e4)}

    def initial(self, tracks: int) -> HybridState:
        shape = (tracks, self.posterior.classes)
        return HybridState(
            np.zeros(tracks), np.zeros(shape), np.zeros(shape), np.zeros(tracks), np.zeros(shape)
        )

    def contribution(self, views: MeasuredViews) -> HybridState:
        wls = WlsSums.one(views, self.value["gamma"], self.value["prior"])
        pmf = views.mean_laplace_pmf
        weight = np.exp(-self.value["gamma"] * entropy(pmf))
        return HybridState(wls.count, wls.information, wls.evidence, weight, weight[:, None] * pmf)

    def predict(self, state: HybridState) -> np.ndarray:
        wls = WlsSums(state.count, state.information, state.evidence).scores()
        pmf = state.mass / np.maximum(state.weight, SMALLEST)[:, None]
        ella = np.log(np.maximum(pmf, FLOOR))
        mix = self.value["mix"]
        scores = mix * wls / self.value["wls_temperature"] + (1 - mix) * ella / self.value["ella_temperature"]
        return softmax(scores * growth(state.count, self.value["alpha"], 1.0))
