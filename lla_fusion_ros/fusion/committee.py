"""`committee`: a learned linear and a learned log-linear pool, and the mean of what the two say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import (
    SMALLEST,
    FitTracks,
    Scalar,
    SumFuser,
    Value,
    Values,
    growth,
)
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.pool import FLOOR, scaled_pmf
from lla_fusion_ros.fusion.quality import quality
from lla_fusion_ros.fusion.reliability import LARGEST_LOG_WEIGHT
from lla_fusion_ros.pmf import softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

SIGNS = ("entropy", "log_variance")


@dataclass(frozen=True, slots=True)
class TwoSums:
    """The state of two weighted means that run over the same views.

    Attributes:
        count: L, the number of views.                               [tracks]
        linear_weight, log_weight: sums of the weights.              [tracks]
        linear, log: sums of weight times pmf, of weight times logits.  [tracks, classes]
    """

    count: np.ndarray
    linear_weight: np.ndarray
    log_weight: np.ndarray
    linear: np.ndarray
    log: np.ndarray


class Committee(SumFuser):
    """pmf = (softmax(s L^alpha / T) + softmax(r (sum v_t)^a e^-b)) / 2.

    s = ln(sum w_t p_t / sum w_t) is `reliable_pool`, r = sum v_t zc_t / sum v_t is `reliability`, both with
    two signs of quality only: the entropy of the view and the Laplace variance of its most probable class
    (eq. linearizeCov) under a small prior. w_t = exp(linear_theta . f_t) and v_t = exp(log_theta . f_t). The
    linear pool is robust against a confident wrong view, the log-linear one uses what every view rules out;
    they err on different tracks, so the mean is surer than either. Cost O(C(D + M)) per view beside
    the variance of the top class, state O(M).
    """

    name = "committee"
    scalars = {
        "alpha": Scalar(0.1, 0.0, 1.0),
        "temperature": Scalar(1.0, 0.02, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 20.0, log=True),
        "a": Scalar(0.3, 0.0, 1.0),
        "b": Scalar(0.0, -4.0, 4.0),
    }
    options = {"prior": Scalar(1.0, 1e-6, 1e4, log=True)}  # of the Laplace variance among the signs
    vectors = ("linear_theta", "log_theta", "center", "scale")  # one entry per sign, in the order of SIGNS

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        by_entropy = np.array([-1.0, 0.0])  # nothing fitted: exp(-H)
        center = self._vector("center", np.zeros(len(SIGNS)))
        scale = self._vector("scale", np.ones(len(SIGNS)))
        if not (scale > 0).all():
            raise InputError(f"value 'scale' of fuser '{self.name}' must be positive")
        thetas = [self._vector(key, by_entropy) for key in ("linear_theta", "log_theta")]
        self.slope = np.stack(thetas, axis=1) / scale[:, None]  # [signs, 2]
        self.offset = center @ self.slope  # [2]

    def _vector(self, key: str, default: np.ndarray) -> np.ndarray:
        vector = self.vector.get(key, default)
        if len(vector) != len(SIGNS):
            raise InputError(
                f"value '{key}' of fuser '{self.name}' has {len(vector)} entries, not {len(SIGNS)}"
            )
        return vector

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
        """Learn both pools on validation tracks, each by itself (least NLL)."""
        from lla_fusion_ros.fusion.fitting.committee import fit_committee  # torch only where fitted

        return fit_committee(posterior, tracks)

    def initial(self, tracks: int) -> TwoSums:
        sums = np.zeros((2, tracks, self.posterior.classes))
        return TwoSums(np.zeros(tracks), np.zeros(tracks), np.zeros(tracks), *sums)

    def contribution(self, views: MeasuredViews) -> TwoSums:
        log_weights = quality(views, SIGNS, self.value["prior"]) @ self.slope - self.offset  # [t, 2]
        weights = np.exp(np.clip(log_weights, -LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT))
        linear, log = weights[:, 0], weights[:, 1]
        pmf = scaled_pmf(views, self.value["view_temperature"])
        return TwoSums(
            np.ones(len(pmf)), linear, log, linear[:, None] * pmf, log[:, None] * views.mean_centred
        )

    def predict(self, state: TwoSums) -> np.ndarray:
        pooled = state.linear / np.maximum(state.linear_weight, SMALLEST)[:, None]
        power = growth(state.count, self.value["alpha"], self.value["temperature"])
        total = np.maximum(state.log_weight, SMALLEST)[:, None]
        scale = total ** self.value["a"] * np.exp(-self.value["b"])
        linear = softmax(np.log(np.maximum(pooled, FLOOR)) * power)
        return 0.5 * (linear + softmax(state.log / total * scale))
