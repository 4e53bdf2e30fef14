"""`dual_pool`: a learned linear and a learned log-linear pool of the same views, multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import SMALLEST, FitTracks, Scalar, SumFuser, Value, Values
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.quality import quality
from lla_fusion_ros.fusion.reliability import LARGEST_LOG_WEIGHT, SIGNS
from lla_fusion_ros.pmf import max_shift
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.products import last_axis_sum, weighted_sum

MOST_RARITY = 10.0  # logits that a class of standard rarity may gain or lose
LARGEST_TRUST = 3.0  # no view speaks for a pool more than e^3 times as sure, or as unsure, as a standard one
# Constants that meet the columns of a state are tables of one row: of one track, numpy need not broadcast.
MOST_LEARNED = np.array([[LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT, LARGEST_TRUST]])
LEAST_LEARNED = -MOST_LEARNED
FIRST_CLASS = 4  # the column of TwoSums where the sums over classes begin
FEWEST = np.array([[1.0, SMALLEST, SMALLEST]])  # views and weights of a track that has seen nothing


@dataclass(frozen=True, slots=True)
class TwoSums:
    """The state of two weighted means that run over the same views.

    Attributes:
        sums: a row for each track, in this order:                              [tracks, 4 + 2 classes]
            the number of views L; sums of the linear weights, of the log-linear weights, of the linear
            weight times the trust in the view; of the linear weight times pmf; of the log-linear weight
            times logits.
    """

    sums: np.ndarray

    @classmethod
    def zeros(cls, tracks: int, classes: int) -> TwoSums:
        return cls(np.zeros((tracks, FIRST_CLASS + 2 * classes)))

    @property
    def weights(self) -> np.ndarray:
        """Sums of the linear and of the log-linear weights.  [tracks, 2]"""
        return self.sums[:, 1:3]

    @property
    def trust(self) -> np.ndarray:
        """Sum of the linear weight times the trust in the view.  [tracks]"""
        return self.sums[:, 3]

    @property
    def pools(self) -> np.ndarray:
        """Sums of weight times pmf, of weight times logits.  [tracks, 2, classes]"""
        tracks, columns = self.sums.shape
        return self.sums[:, FIRST_CLASS:].reshape(tracks, 2, (columns - FIRST_CLASS) // 2)


class DualPool(SumFuser):
    """q = softmax(s e^g L^alpha / T + r (sum v_t)^a e^-b),  pmf = (1 - lapse) q + lapse softmax(spread ln q).

    s = ln(sum w_t p_t / sum w_t) is the linear pool of `reliable_pool`, r = sum v_t zc_t / sum v_t the
    log-linear one of `reliability`, with w_t = exp(linear_theta . f_t), v_t = exp(log_theta . f_t) and f_t
    the standardised signs of quality, the Laplace variance (eq. linearizeCov, under a small prior) among
    them. The linear pool is robust against a confident wrong view, the log-linear one uses what every view
    rules out; fitted together, each leaves to the other what that does better. g = sum w_t g_t / sum w_t with
    g_t = trust . f_t is the trust in the track: the same pool is surer where the views that made it are good
    ones.

    Both pools take views corrected for the rarity rho of the classes (`EnsemblePosterior.rarity`):
    p_t = softmax(z_t / T_v + linear_rarity rho) and zc_t = z_t + log_rarity rho, centred. In bad frames
    networks fall back on the classes that they were most often in doubt about in training, and name the
    others too seldom.

    `lapse` is the share of objects that the networks misread as a whole, in every view alike: further views
    of the same object cannot make the fused class surer than that. Its fit is never below half an
    object (Jeffreys), however well the validation tracks went. Cost O(C(D + M)) per view beside the
    variance of the top class, state O(M).
    """

    name = "dual_pool"
    scalars = {
        "alpha": Scalar(0.1, 0.0, 1.0),
        "temperature": Scalar(2.0, 0.02, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 20.0, log=True),
        "a": Scalar(0.3, 0.0, 1.0),
        "b": Scalar(0.7, -4.0, 4.0),
        "lapse": Scalar(0.003, 0.0, 0.5),
        "spread": Scalar(0.3, 0.0, 1.0),
        "linear_rarity": Scalar(0.0, -MOST_RARITY, MOST_RARITY),
        "log_rarity": Scalar(0.0, -MOST_RARITY, MOST_RARITY),
    }
    options = {"prior": Scalar(1.0, 1e-6, 1e4, log=True)}  # of the Laplace variance among the signs
    vectors = (
        "linear_theta",
        "log_theta",
        "trust",
        "center",
        "scale",
    )  # one entry per sign, in the order of SIGNS

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        by_entropy = np.where(np.array(SIGNS) == "entropy", -1.0, 0.0)  # nothing fitted: exp(-H)
        center = self._vector("center", np.zeros(len(SIGNS)))
        scale = self._vector("scale", np.ones(len(SIGNS)))
        if not (scale > 0).all():
            raise InputError(f"value 'scale' of fuser '{self.name}' must be positive")
        thetas = [self._vector(key, by_entropy) for key in ("linear_theta", "log_theta")]
        thetas.append(self._vector("trust", np.zeros(len(SIGNS))))
        self._slope = np.stack(thetas, axis=1) / scale[:, None]  # [signs, 3]
        self._offset = center[None] @ self._slope  # [1, 3]
        value = self.value
        # What a track's numbers of views and weights make of its scores: powers of them, added as logarithms.
        self._powers = np.array([[value["alpha"], 0.0], [0.0, 0.0], [0.0, value["a"] - 1.0]])
        self._scale = np.array([[-np.log(value["temperature"]), -value["b"]]])
        self._spreads = np.array([[1.0], [value["spread"]]])
        self._shares = np.array([1.0 - value["lapse"], value["lapse"]])
        self._linear_benefit, self._log_benefit = (
            value[key] * posterior.rarity if value[key] else None for key in ("linear_rarity", "log_rarity")
        )  # [classes]

    def _vector(self, key: str, default: np.ndarray) -> np.ndarray:
        vector = self.vector.get(key, default)
        if len(vector) != len(SIGNS):
            raise InputError(
                f"value '{key}' of fuser '{self.name}' has {len(vector)} entries, not {len(SIGNS)}"
            )
        return vector

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
        """Learn everything at once on validation tracks (least NLL)."""
        from lla_fusion_ros.fusion.fitting.dual_pool import fit_dual_pool  # torch only where fitted

        return fit_dual_pool(posterior, tracks)

    def initial(self, tracks: int) -> TwoSums:
        return TwoSums.zeros(tracks, self.posterior.classes)

    def contribution(self, views: MeasuredViews) -> TwoSums:
        learned = quality(views, SIGNS, self.value["prior"]).dot(self._slope) - self._offset  # [t, 3]
        learned = np.minimum(np.maximum(learned, LEAST_LEARNED), MOST_LEARNED)
        state = TwoSums(np.empty((len(views), FIRST_CLASS + 2 * self.posterior.classes)))
        state.sums[:, 0] = 1.0
        weights = np.exp(learned[:, :2], out=state.weights)
        np.multiply(learned[:, 2], weights[:, 0], out=state.trust)
        pools = state.pools
        pmf = views.tempered_pmf(self.value["view_temperature"], self._linear_benefit)
        np.multiply(weights[:, :1], pmf, out=pools[:, 0])
        logits = views.mean_centred if self._log_benefit is None else views.mean_centred + self._log_benefit
        np.multiply(weights[:, 1:], logits, out=pools[:, 1])
        return state

    def predict(self, state: TwoSums) -> np.ndarray:
        totals = np.maximum(state.sums[:, :3], FEWEST)  # views, linear weights, log-linear weights
        exponents = np.log(totals).dot(self._powers) + self._scale
        exponents[:, 0] += state.trust / totals[:, 1]
        factors = np.exp(exponents)  # e^g L^alpha / T, (sum v)^(a - 1) e^-b
        pools = state.pools.copy()
        linear = pools[:, 0]
        np.log(np.maximum(linear / totals[:, 1:2], FLOOR), out=linear)
        scores = weighted_sum(factors, pools)
        # softmax of the scores and of spread times them, in one go: both have their largest at 0
        powers = np.exp(self._spreads * max_shift(scores)[:, None])  # [t, 2, m]
        return weighted_sum(self._shares / last_axis_sum(powers), powers)
