"""`evidence_pool`: a linear pool that grows surer with new evidence, not with the number of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import (
    FLOOR,
    MOST_BY_SIZE,
    SMALLEST,
    Array,
    Scalar,
    Value,
    Values,
    exp,
    growth,
    largest,
    log,
    ones_like,
    softmax,
)
from lla_fusion_ros.fusion.learn import Free, held
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES, MeasuredViews, quality_features
from lla_fusion_ros.fusion.quality import LARGEST_TRUST, RIDGE, QualityFuser
from lla_fusion_ros.fusion.safety import least_lapse, opposed_views, safety_of
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews

MOST_DOUBT = 0.25
# Of contradictions beside the tracks in a fit: hardly felt by the NLL; more only where that leaves it unsafe.
OPPOSED_WEIGHTS = (0.05, 0.3, 2.0)
MOST_RARITY = 10.0  # logits that a class of standard rarity may gain or lose
# A second opinion guards against odd frames: weights are more equal there, and a class needs a second view.
SECOND_OPINION = 0.2  # how much it counts
EVEN = 0.25  # its weights are u^EVEN
LEAST_CONFIRMED = 1e-3  # of a class's support, where a single view gives all of it


@dataclass(frozen=True, slots=True)
class Evidence:
    """The state: seven sums over views.

    Attributes:
        count: L, the number of views.                                        [tracks]
        weight: sum of the weights u, with f = (s / 20)^size among them.      [tracks]
        pmf: sum of u p.                                                      [tracks, classes]
        even, squares: sum of e and of e^2, with e = f (u / f)^EVEN p.        [tracks, classes]
        footprint: sum of u v, with v = B^T phi of all networks in a row.     [tracks, networks * D]
        variance: sum of u V, with V = |v|^2.                                 [tracks]
    """

    count: Array
    weight: Array
    pmf: Array
    even: Array
    squares: Array
    footprint: Array
    variance: Array

    def independent_views(self) -> Array:
        """L_eff: how many independent views say as much as these, 1 to L.  [tracks]

        The variance of single views over that of their mean, both under the Laplace posterior: 1 where all
        frames are the same, L where no two have anything in common.
        """
        weight = self.weight.clip(min=SMALLEST)
        of_mean = ((self.footprint / weight[:, None]) ** 2).sum(-1)
        ratio = self.variance / weight / of_mean.clip(min=SMALLEST)
        return ratio.clip(max=self.count).clip(min=1.0)

    def confirmed(self) -> Array:
        """For each class, what speaks for it besides the view that speaks for it most.  [tracks, classes]

        The mean of e times 1 - 1/n, n = (sum e)^2 / sum e^2 being how many views support the class.
        """
        views = (self.even**2 / self.squares.clip(min=SMALLEST)).clip(min=1.0)
        mean = self.even / self.even.sum(-1)[:, None].clip(min=SMALLEST)
        return mean * (1.0 - (1.0 - LEAST_CONFIRMED) / views)


class EvidencePool(QualityFuser):
    """q = .8 softmax(ln(sum u_t p_t / sum u_t) g) + .2 softmax(ln(second opinion) g),  g = L_eff^alpha / T,
    pmf = (1 - 2 doubt) q + 2 doubt r.

    p_t is the mean over networks of softmax(z_t / T_t), u_t = (s_t / 20)^size exp(-gamma H(p_t)) with s_t the
    side of the view's box in image pixels: what is far away does not outvote what is near.

    T_t = view_temperature e^(theta . f_t): where `by_quality` is 1, the tracks were enough to tell that it
    helps if the standardised quality features f_t make a bad view flat; else theta is 0. With the option
    `rarity` the softmax is that of z_t / T_t + rarity rho, which favours classes that networks name seldom in
    bad frames (`EnsemblePosterior.rarity`).

    Views count by what is new in them: L_eff of `Evidence` stays at 1 however often the same frame comes,
    so a stuck camera or a parked car makes nothing surer. The pool is linear and the fit also sees pairs of
    sure views of different classes, half the truth to each: views that contradict each other leave both
    classes open, whichever of them is the surer one.

    The second opinion (`Evidence.confirmed`) is what the views say without the one that supports a class
    most: a single odd frame, however sure, never makes its class sure against the others.

    r = softmax(spread ln q), where no class lies more than a factor of M - 1 below the first, gives the
    first class half at most. So 1 - p >= doubt for every class and any number of classes and views. `doubt`
    is fitted and never below half an object among the validation objects (Jeffreys): what they support.
    Cost O(C(D^2 + M)) per view, state O(M + C D).
    """

    name = "evidence_pool"
    scalars = {
        "alpha": Scalar(1.0, 0.0, 2.0),
        "temperature": Scalar(0.5, 0.02, 20.0, log=True),
        "view_temperature": Scalar(1.0, 0.1, 20.0, log=True),
        "gamma": Scalar(1.0, 0.01, 20.0, log=True),
        "size": Scalar(2.0, 0.0, MOST_BY_SIZE),
        "doubt": Scalar(0.003, 0.0, MOST_DOUBT),
        "spread": Scalar(0.3, 0.0, 1.0),
    }
    options = {
        "by_quality": Scalar(0.0, 0.0, 1.0),
        "rarity": Scalar(0.0, -MOST_RARITY, MOST_RARITY),
    }
    vectors = (
        "theta",
        "center",
        "scale",
    )  # in the order of QUALITY_FEATURES, the variance unused

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.value.setdefault("theta", np.zeros(len(QUALITY_FEATURES)))

    def initial(self, tracks: int) -> Evidence:
        p = self.posterior
        one = np.zeros(tracks)
        pmf, footprint = np.zeros((tracks, p.classes)), np.zeros((tracks, p.networks * p.features))
        return Evidence(one, one.copy(), pmf, pmf.copy(), pmf.copy(), footprint, one.copy())

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        footprint = views.bounded_features.swapaxes(0, 1) @ self.posterior.mean_whitening  # [c, t, D]
        flat = footprint.swapaxes(0, 1).reshape(len(views), self.posterior.networks * self.posterior.features)
        shifted = views.shifted
        return quality_features(views, variance=False), shifted, flat, views.log_size, self.posterior.rarity

    def sums(
        self, features: Array, shifted: Array, footprint: Array, log_size: Array, rarity: Array
    ) -> Evidence:
        v = self.value
        quality = ((features - v["center"]) / v["scale"]) @ v["theta"]
        flatter = v["view_temperature"] * exp(quality.clip(-LARGEST_TRUST, LARGEST_TRUST))  # [t]
        pmf = softmax(shifted / flatter[:, None, None] + v["rarity"] * rarity).mean(axis=1)
        entropy = -(pmf * log(pmf.clip(min=FLOOR))).sum(-1)
        nearness, weight = exp(v["size"] * log_size), exp(-v["gamma"] * entropy)
        even = (nearness * weight**EVEN)[:, None] * pmf
        weight = nearness * weight
        return Evidence(
            count=ones_like(weight),
            weight=weight,
            pmf=weight[:, None] * pmf,
            even=even,
            squares=even**2,
            footprint=weight[:, None] * footprint,
            variance=weight * (footprint**2).sum(-1),
        )

    def predict(self, state: Evidence) -> Array:
        v = self.value
        grown = growth(state.independent_views(), v["alpha"], v["temperature"])
        pooled = state.pmf / state.weight.clip(min=SMALLEST)[:, None]
        first, second = (log(part.clip(min=FLOOR)) * grown for part in (pooled, state.confirmed()))
        lowest = -float(np.log(max(first.shape[-1] - 1, 1)))
        tail = softmax((v["spread"] * (first - largest(first))).clip(min=lowest))
        pmf = (1.0 - SECOND_OPINION) * softmax(first) + SECOND_OPINION * softmax(second)
        return (1.0 - 2.0 * v["doubt"]) * pmf + 2.0 * v["doubt"] * tail

    @classmethod
    def fit(
        cls, posterior: EnsemblePosterior, tracks: TrackViews, by_quality: bool = False
    ) -> dict[str, Value]:
        """Learn everything at once on validation tracks and on pairs of their sure views that contradict."""
        fuser, inputs = cls.standardised(posterior, tracks, by_quality=float(by_quality))
        least = least_lapse(tracks.objects)
        usual = {"alpha": 1.0, "temperature": 0.6, "view_temperature": 1.3, "gamma": 1.0, "size": 2.0}
        usual = {name: cls.freed(name, value) for name, value in usual.items()}

        def values(free: Free) -> dict[str, Any]:
            doubt, spread = free["tail"].sigmoid()
            return {
                **({"theta": free["theta"]} if by_quality else {}),
                **{name: cls.bounded(name, free[name]) for name in usual},
                "doubt": least + (MOST_DOUBT - least) * doubt,
                "spread": spread,
            }

        def penalty(free: Free) -> Any:
            by_theta = (free["theta"] ** 2).sum() if by_quality else 0.0
            return RIDGE * by_theta + held(free, usual)

        start: dict[str, Any] = {**usual, "tail": [-5.0, -0.8]}  # logits of doubt and spread
        if by_quality:
            start["theta"] = [0.0] * len(QUALITY_FEATURES)
        views = views_of(posterior, tracks)
        opposed, against = opposed_views(views, tracks, seed=1), None
        if opposed is not None:
            first, second = (fuser.inputs(side) for side in opposed.sides(views))
            against = first, second, opposed.classes
        for weight in OPPOSED_WEIGHTS if against is not None else (0.0,):
            found = fuser.learn(inputs, tracks, start, values, penalty, 60, against, weight)
            if not safety_of(cls(posterior, found), tracks, views).faults():
                break
        return found
