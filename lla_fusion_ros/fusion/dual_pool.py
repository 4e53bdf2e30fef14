"""`dual_pool`: a learned linear and a learned log-linear pool of the same views, multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lla_fusion_ros.fusion.base import (
    FLOOR,
    SMALLEST,
    Array,
    Scalar,
    Value,
    Values,
    exp,
    growth,
    log,
    ones_like,
    softmax,
)
from lla_fusion_ros.fusion.learn import Free
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES, MeasuredViews, quality_features
from lla_fusion_ros.fusion.quality import (
    BY_ENTROPY,
    LARGEST_LOG_WEIGHT,
    LARGEST_TRUST,
    MOST_RARITY,
    RIDGE,
    VARIANCE_PRIOR,
    QualityFuser,
)
from lla_fusion_ros.fusion.safety import least_lapse
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews

MOST_LAPSE = 0.5
# The two pools can trade their corrections for rarity against each other; this keeps both near nothing.
RARITY_RIDGE = 3e-4
ENTROPY, VARIANCE = QUALITY_FEATURES.index("entropy"), QUALITY_FEATURES.index("log_variance")


@dataclass(frozen=True, slots=True)
class TwoSums:
    """The state of two weighted means that run over the same views.

    Attributes:
        count: L, the number of views.                                  [tracks]
        linear, log: sums of the linear and of the log-linear weights.  [tracks]
        trust: sum of linear weight times trust in the view.            [tracks]
        pmf: sum of linear weight times pmf.                            [tracks, classes]
        logits: sum of log-linear weight times logits.                  [tracks, classes]
    """

    count: Array
    linear: Array
    log: Array
    trust: Array
    pmf: Array
    logits: Array


class DualPool(QualityFuser):
    """q = softmax(s e^g L^alpha / T + r (sum v_t)^a e^-b),  pmf = (1 - lapse) q + lapse softmax(spread ln q).

    s = ln(sum w_t p_t / sum w_t) is the linear pool of `reliable_pool`, r = sum v_t zc_t / sum v_t the
    log-linear one of `reliability`, with w_t = exp(linear_theta . f_t), v_t = exp(log_theta . f_t) and f_t
    the standardised quality features. The linear pool is robust against a confident wrong view, the
    log-linear one uses what every view rules out; fitted together, each leaves to the other what that does
    better. g = sum w_t g_t / sum w_t with g_t = trust . f_t is the trust in the track: the same pool is surer
    where the views that made it are good ones.

    Both pools take views corrected for the rarity rho of the classes (`EnsemblePosterior.rarity`):
    p_t = softmax(z_t / T_v + linear_rarity rho) and zc_t = z_t + log_rarity rho, centred. In bad frames
    networks fall back on the classes that they were most often in doubt about in training, and name the
    others too seldom.

    `lapse` is the share of objects that the networks misread as a whole, in every view alike: further views
    of the same object cannot make the fused class surer than that. Its fit is never below half an
    object (Jeffreys), however well the validation tracks went. Cost O(C(D + M)) per view, state O(M).
    """

    name = "dual_pool"
    scalars = {
        "alpha": Scalar(0.1, 0.0, 1.0),
        "temperature": Scalar(2.0, 0.02, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 20.0, log=True),
        "a": Scalar(0.3, 0.0, 1.0),
        "b": Scalar(0.7, -4.0, 4.0),
        "lapse": Scalar(0.003, 0.0, MOST_LAPSE),
        "spread": Scalar(0.3, 0.0, 1.0),
        "linear_rarity": Scalar(0.0, -MOST_RARITY, MOST_RARITY),
        "log_rarity": Scalar(0.0, -MOST_RARITY, MOST_RARITY),
    }
    options = {"prior": Scalar(VARIANCE_PRIOR, 1e-6, 1e4, log=True)}  # of the variance among the features
    vectors = ("linear_theta", "log_theta", "trust", "center", "scale")  # in the order of QUALITY_FEATURES

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.value.setdefault("linear_theta", np.array(BY_ENTROPY))
        self.value.setdefault("log_theta", np.array(BY_ENTROPY))
        self.value.setdefault("trust", np.zeros(len(QUALITY_FEATURES)))

    def initial(self, tracks: int) -> TwoSums:
        one, classes = np.zeros(tracks), np.zeros((tracks, self.posterior.classes))
        return TwoSums(one, one.copy(), one.copy(), one.copy(), classes, classes.copy())

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        # The fit leaves the variance out, as it adds nothing beside the rarity; a bundle may still weigh it.
        weighed = any(self.value[key][VARIANCE] for key in ("linear_theta", "log_theta", "trust"))
        features = quality_features(views, self.value["prior"], variance=weighed)
        return features, views.shifted, views.mean_centred, self.posterior.rarity

    def sums(self, features: Array, shifted: Array, centred: Array, rarity: Array) -> TwoSums:
        v = self.value
        standard = (features - v["center"]) / v["scale"]  # [t, features]
        linear = exp((standard @ v["linear_theta"]).clip(-LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT))
        log_linear = exp((standard @ v["log_theta"]).clip(-LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT))
        trust = (standard @ v["trust"]).clip(-LARGEST_TRUST, LARGEST_TRUST)
        pmf = softmax(shifted / v["view_temperature"] + v["linear_rarity"] * rarity).mean(axis=1)
        logits = centred + v["log_rarity"] * rarity
        return TwoSums(
            count=ones_like(linear),
            linear=linear,
            log=log_linear,
            trust=linear * trust,
            pmf=linear[:, None] * pmf,
            logits=log_linear[:, None] * logits,
        )

    def predict(self, state: TwoSums) -> Array:
        v = self.value
        linear, log_linear = state.linear.clip(min=SMALLEST), state.log.clip(min=SMALLEST)
        pooled = log((state.pmf / linear[:, None]).clip(min=FLOOR))
        surer = growth(state.count, v["alpha"], v["temperature"]) * exp(state.trust / linear)[:, None]
        adding = (log_linear ** (v["a"] - 1.0) * exp(-v["b"]))[:, None]
        scores = pooled * surer + state.logits * adding
        return (1.0 - v["lapse"]) * softmax(scores) + v["lapse"] * softmax(v["spread"] * scores)

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value]:
        """Learn everything at once on validation tracks.

        The ridge spares the entropy of the linear pool: what it shrinks towards is `pool` times a mean of
        logits.
        """
        fuser, inputs = cls.standardised(posterior, tracks)
        least = least_lapse(tracks.objects)

        def values(free: Free) -> dict[str, Any]:
            lapse, spread = free["tail"].sigmoid()
            temperature, view_temperature = free["log_temperatures"].unbind()
            linear_rarity, log_rarity = free["rarities"].clip(-MOST_RARITY, MOST_RARITY)
            return {
                "linear_theta": free["thetas"][0],
                "log_theta": free["thetas"][1],
                "trust": free["thetas"][2],
                "alpha": free["alpha"].clip(0.0, 1.0),
                "temperature": cls.within_bounds("temperature", temperature),
                "view_temperature": cls.within_bounds("view_temperature", view_temperature),
                "a": free["a"].clip(0.0, 1.0),
                "b": free["b"].clip(-4.0, 4.0),
                "lapse": least + (MOST_LAPSE - least) * lapse,
                "spread": spread,
                "linear_rarity": linear_rarity,
                "log_rarity": log_rarity,
            }

        def penalty(free: Free) -> Any:
            squares = (free["thetas"] ** 2).sum() - free["thetas"][0, ENTROPY] ** 2
            return RIDGE * squares + RARITY_RIDGE * (free["rarities"] ** 2).sum()

        start = {
            "thetas": [BY_ENTROPY, [0.0] * len(QUALITY_FEATURES), [0.0] * len(QUALITY_FEATURES)],
            "alpha": 0.1,
            "log_temperatures": [0.7, 0.0],
            "a": 0.3,
            "b": 0.7,
            "rarities": [0.0, 0.0],
            "tail": [-5.0, -1.0],  # logits of lapse and spread
        }
        return fuser.learn(inputs, tracks, start, values, penalty, iterations=60)
