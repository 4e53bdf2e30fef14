"""`ella_mixture`: choose a view and a network, then sample: a true mixture, tempered over time."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import FLOOR, Scalar, SumFuser, WeightedSum, growth
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.pmf import entropy, monte_carlo, softmax


class EllaMixture(SumFuser):
    """s = ln(sum_t u_t p_t / sum_t u_t), pmf = softmax(s L^alpha / T), p_t = mean_c E[softmax(z_tc)].

    z_tc is the Laplace Gaussian of the view (eq. 18), u_t = exp(-gamma H_t). With gamma = alpha = 0
    and T = 1 it is the pmf of the mixture of CL Gaussians, which unlike eq. 28 as printed is
    multimodal. Cost O(CM) per view beside the variances (O(CMD^2)), state
    O(M). Use it where networks disagree, as at L = 1.
    """

    name = "ella_mixture"
    scalars = {
        "gamma": Scalar(0.0, 0.0, 20.0),
        "alpha": Scalar(0.0, 0.0, 1.0),
        "temperature": Scalar(1.0, 0.05, 20.0, log=True),
    }
    options = {"samples": Scalar(0, 0, 4096)}  # Monte Carlo points of each view's pmf; 0: closed form

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        samples = int(self.value["samples"])
        pmf = views.mean_laplace_pmf
        if samples:
            pmf = monte_carlo(views.shifted, views.laplace_variance, samples).pmf.mean(axis=1)
        return WeightedSum.one(np.exp(-self.value["gamma"] * entropy(pmf)), pmf)

    def predict(self, state: WeightedSum) -> np.ndarray:
        scores = np.log(np.maximum(state.mean(), FLOOR))
        return softmax(scores * growth(state.count, self.value["alpha"], self.value["temperature"]))
