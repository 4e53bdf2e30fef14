"""`ella`: the weighted sum of the views' Gaussians, eq. multimodality as printed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import SMALLEST, FitTracks, Scalar, SumFuser, Value, Values
from lla_fusion_ros.fusion.log_linear import network_weights
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.pmf import monte_carlo, probit
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior


@dataclass(frozen=True, slots=True)
class EllaState:
    """Sums over views and networks, each term weighted with w_lc.

    Attributes:
        weight: of 1.                                     [tracks]
        logits: of the mean-centred logits.               [tracks, classes]
        features: of the features, network by network.    [tracks, networks, features]
    """

    weight: np.ndarray
    logits: np.ndarray
    features: np.ndarray


class Ella(SumFuser):
    """z = sum_lc w_lc z_lc with sum w = 1 (eq. multimodality): jointly Gaussian views make one Gaussian.

    Its mean is sum w_lc g_lc, its variance sum_c phi_c^T A_cm^-1 phi_c with phi_c = sum_l w_lc phi_lc
    (METHOD 3), plus the cross terms where the posterior has them: two running sums are exact. Weights
    w_lc ~ w_c exp(-gamma H_lc) V_lc^-delta, H_lc the entropy and V_lc the mean variance of the view:
    equal as printed (nothing set), by inverse covariance (delta = 1), or learned (`fit`).
    Cost O(C(D + M)) per view and O(CMD^2) per prediction, state O(C(D + M)).
    """

    name = "ella"
    scalars = {"gamma": Scalar(0.0, 0.0, 20.0), "delta": Scalar(0.0, -2.0, 2.0)}
    options = {"samples": Scalar(0, 0, 4096)}  # Monte Carlo points of the pmf; 0: closed form (probit)
    vectors = ("weights",)

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.weights = network_weights(self.name, self.vector.get("weights"), posterior.networks)

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
        """Learn the weights of networks, entropy and variance on validation tracks (least NLL)."""
        from lla_fusion_ros.fusion.fitting.ella import fit_ella  # torch only where something is fitted

        return fit_ella(posterior, tracks)

    def initial(self, tracks: int) -> EllaState:
        p = self.posterior
        return EllaState(
            np.zeros(tracks), np.zeros((tracks, p.classes)), np.zeros((tracks, p.networks, p.features))
        )

    def contribution(self, views: MeasuredViews) -> EllaState:
        weight = np.broadcast_to(self.weights, (len(views), self.posterior.networks))  # [t, c]
        if self.value["gamma"]:
            weight = weight * np.exp(-self.value["gamma"] * views.network_entropy)
        if self.value["delta"]:
            variance = np.maximum(views.laplace_variance.mean(axis=-1), 1e-12)
            weight = weight * variance ** -self.value["delta"]
        return EllaState(
            weight.sum(axis=1),
            np.einsum("tc,tcm->tm", weight, views.centred),
            weight[..., None] * views.bounded_features,
        )

    def gaussian(self, state: EllaState) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the fused logits, zero before any view.  2 x [tracks, classes]"""
        total = np.maximum(state.weight, SMALLEST)
        features = state.features / total[:, None, None]
        if self.posterior.cross is None:
            variance = np.add.reduce(self.posterior.single_variance(features), axis=1, dtype=np.float64)
        else:
            variance = self.posterior.covariance(features, features).sum(axis=(1, 2))
        return state.logits / total[:, None], np.maximum(variance, 0.0)

    def predict(self, state: EllaState) -> np.ndarray:
        mean, variance = self.gaussian(state)
        samples = int(self.value["samples"])
        return monte_carlo(mean, variance, samples).pmf if samples else probit(mean, variance)
