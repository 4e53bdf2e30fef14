"""`ella`: the weighted sum of the views' Gaussians, eq. 28 as printed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.fusion.along import running_sums, views_of
from lla_fusion_ros.fusion.base import SMALLEST, Scalar, SumFuser, Value, Values
from lla_fusion_ros.fusion.learn import chance_of_an_error, scored_pairs, smoothed_nll
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import monte_carlo, probit, softmax
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import take_rows

MOST_TRACKS = 200  # to fit on: a prediction costs O(CMD^2), and a handful of coefficients needs no more
RIDGE = 1e-3


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
    """z = sum_lc w_lc z_lc with sum w = 1 (eq. 28): jointly Gaussian views make one Gaussian.

    Its mean is sum w_lc g_lc, its variance sum_c phi_c^T A_cm^-1 phi_c with phi_c = sum_l w_lc phi_lc,
    plus the cross terms where the posterior has them: two running sums are exact. Weights
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
        self.weights = self.network_weights()

    def initial(self, tracks: int) -> EllaState:
        p = self.posterior
        return EllaState(
            np.zeros(tracks), np.zeros((tracks, p.classes)), np.zeros((tracks, p.networks, p.features))
        )

    def contribution(self, views: MeasuredViews) -> EllaState:
        weight = self.weights * np.exp(-self.value["gamma"] * views.network_entropy)  # [t, c]
        if self.value["delta"]:  # the variance of every class costs O(CMD^2)
            variance = np.maximum(views.laplace_variance.mean(axis=-1), 1e-12)
            weight = weight * variance ** -self.value["delta"]
        return EllaState(
            weight.sum(axis=1),
            (weight[..., None] * views.centred).sum(axis=1),
            weight[..., None] * views.bounded_features,
        )

    def gaussian(self, state: EllaState) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the fused logits, zero before any view.  2 x [tracks, classes]"""
        total = np.maximum(state.weight, SMALLEST)
        features = state.features / total[:, None, None]
        if self.posterior.cross is None:
            variance = self.posterior.single_variance(features).sum(axis=1, dtype=np.float64)
        else:
            variance = self.posterior.covariance(features, features).sum(axis=(1, 2))
        return state.logits / total[:, None], np.maximum(variance, 0.0)

    def predict(self, state: EllaState) -> np.ndarray:
        mean, variance = self.gaussian(state)
        samples = int(self.value["samples"])
        return monte_carlo(mean, variance, samples).pmf if samples else probit(mean, variance)

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value]:
        """Least NLL over the weights of networks, entropy and variance; future work in the paper."""
        known = np.random.default_rng(0).permutation(np.flatnonzero(tracks.label >= 0))
        tracks = tracks.take(known[:MOST_TRACKS])
        # networks as independent: the cross terms cost C times as much, and hardly move the weights
        views = views_of(posterior.independent(), tracks)
        track, step, label = scored_pairs(tracks)
        wrong = chance_of_an_error(len(label))
        lengths = range(1, tracks.longest + 1)

        def values(point: np.ndarray) -> dict[str, Value]:
            return {
                "weights": softmax(point[:-2]).tolist(),
                "gamma": float(np.clip(point[-2], 0.0, 20.0)),
                "delta": float(np.clip(point[-1], -2.0, 2.0)),
            }

        def loss(point: np.ndarray) -> float:
            fuser = cls(views.posterior, values(point))
            states = running_sums(fuser.contribution(views), len(tracks), tracks.longest, lengths)
            pmf = fuser.predict(take_rows(states, track * tracks.longest + step))
            log_pmf = np.log(np.maximum(pmf, SMALLEST))
            return float(smoothed_nll(log_pmf, label, wrong)) + RIDGE * float((point**2).sum())

        bounds = [(None, None)] * posterior.networks + [(0.0, 20.0), (-2.0, 2.0)]
        start = np.zeros(posterior.networks + 2)
        options = {"maxiter": 30, "eps": 1e-4, "ftol": 1e-8}
        return values(minimize(loss, start, method="L-BFGS-B", bounds=bounds, options=options).x)
