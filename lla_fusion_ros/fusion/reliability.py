"""`reliability`: each view weighted by learned coefficients on its own signs of quality."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import SMALLEST, FitTracks, Scalar, SumFuser, Value, Values, WeightedSum
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.quality import QUALITY, quality
from lla_fusion_ros.pmf import softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

SIGNS = QUALITY
LARGEST_LOG_WEIGHT = 20.0  # one view never counts more than e^20 or less than e^-20 of a standard one


class Reliability(SumFuser):
    """w_t = exp(theta . f_t), s = sum w_t zc_t / sum w_t, pmf = softmax(s (sum w_t)^a e^-b)   (METHOD 4).

    f_t are the signs in `quality.py`, standardised with the `center` and `scale` of the validation views; zc
    is the mean over networks of the mean-centred logits. Two running sums: cost O(C(D + M)) per view,
    state O(M). Use it where validation tracks show the conditions of the road; refit for other networks.
    """

    name = "reliability"
    scalars = {
        "a": Scalar(0.3, 0.0, 1.0),
        "b": Scalar(0.0, -4.0, 4.0),
    }
    vectors = ("theta", "center", "scale")  # one entry per sign, in the order of SIGNS

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        # Nothing fitted: weight by entropy alone, exp(-H).
        theta = self.vector.get("theta", np.where(np.array(SIGNS) == "entropy", -1.0, 0.0))
        center = self.vector.get("center", np.zeros(len(SIGNS)))
        scale = self.vector.get("scale", np.ones(len(SIGNS)))
        for key, vector in (("theta", theta), ("center", center), ("scale", scale)):
            if len(vector) != len(SIGNS):
                raise InputError(
                    f"value '{key}' of fuser '{self.name}' has {len(vector)} entries, not {len(SIGNS)}"
                )
        if not (scale > 0).all():
            raise InputError(f"value 'scale' of fuser '{self.name}' must be positive")
        used = np.flatnonzero(theta)  # a sign without weight is not computed
        self.used = tuple(SIGNS[i] for i in used)
        self.slope = theta[used] / scale[used]
        self.offset = float((self.slope * center[used]).sum())

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
        """Learn theta, a and b on validation tracks (least NLL)."""
        from lla_fusion_ros.fusion.fitting.reliability import fit_reliability  # torch only here

        return fit_reliability(posterior, tracks)

    def initial(self, tracks: int) -> WeightedSum:
        return WeightedSum.zeros(tracks, self.posterior.classes)

    def view_weight(self, views: MeasuredViews, prior: float | None = None) -> np.ndarray:
        """w_t of each view; `prior` as in `quality`.  [t]"""
        if not self.used:
            return np.ones(len(views))
        log_weight = quality(views, self.used, prior) @ self.slope - self.offset
        return np.exp(bounded(log_weight, LARGEST_LOG_WEIGHT))

    def contribution(self, views: MeasuredViews) -> WeightedSum:
        return WeightedSum.one(self.view_weight(views), views.mean_centred)

    def predict(self, state: WeightedSum) -> np.ndarray:
        scale = np.maximum(state.weight, SMALLEST) ** self.value["a"] * np.exp(-self.value["b"])
        return softmax(state.mean() * scale[:, None])
