"""What a view tells about itself: the quantities that fusers and warnings share, each computed once.

All of them ignore a constant added to the logits of a view (the gauge that softmax ignores): logits are
used mean-centred or through the pmf, never raw.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.pmf import entropy
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.views import Views

# A class that lies this far below the best one has a probability of e^-1000: clipping there changes no
# pmf and keeps every sum finite, whatever finite number a network may put out.
LOWEST_LOGIT = -1000.0
# Far beyond any network's features, small enough that squares and long sums of them stay finite.
HIGHEST_FEATURE = 1e30


class MeasuredViews(Views):
    """Checked views whose derived quantities are computed when first asked for, then kept.

    Axes: t tracks, c networks, m classes.
    """

    posterior: EnsemblePosterior

    def __init__(self, views: Views, posterior: EnsemblePosterior) -> None:
        views.check(posterior.networks, posterior.classes, posterior.features)
        variance = views.variance
        if variance is not None:
            if variance.shape != views.logits.shape:
                raise InputError(f"views.variance has shape {variance.shape}, expected {views.logits.shape}")
            if not (np.isfinite(variance).all() and (variance >= 0).all()):
                raise InputError("views.variance must be finite and not negative")
        for name, value in (
            ("logits", views.logits),
            ("features", views.features),
            ("variance", variance),
            ("posterior", posterior),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def shifted(self) -> np.ndarray:
        """Max-shifted logits (eq. shifted_softmax), clipped at LOWEST_LOGIT.  [t, c, m]"""
        logits = np.asarray(self.logits, np.float64)
        with np.errstate(over="ignore"):  # the difference of two huge numbers: clipped in the same line
            return np.maximum(logits - logits.max(axis=-1, keepdims=True), LOWEST_LOGIT)

    @cached_property
    def centred(self) -> np.ndarray:
        """Mean-centred logits zc.  [t, c, m]"""
        return self.shifted - self.shifted.mean(axis=-1, keepdims=True)

    @cached_property
    def _powers(self) -> tuple[np.ndarray, np.ndarray]:
        powers = np.exp(self.shifted)
        return powers, powers.sum(axis=-1, keepdims=True)

    @cached_property
    def pmf(self) -> np.ndarray:
        """p_lc of each network (eq. individual_pmf).  [t, c, m]"""
        powers, total = self._powers
        return powers / total

    @cached_property
    def log_pmf(self) -> np.ndarray:
        """ln p_lc, at least LOWEST_LOGIT - ln m.  [t, c, m]"""
        return self.shifted - np.log(self._powers[1])

    @cached_property
    def mean_pmf(self) -> np.ndarray:
        """The deep ensemble's pmf: mean over networks.  [t, m]"""
        return self.pmf.mean(axis=1)

    @cached_property
    def mean_centred(self) -> np.ndarray:
        """Mean over networks of the mean-centred logits.  [t, m]"""
        return self.centred.mean(axis=1)

    @cached_property
    def entropy(self) -> np.ndarray:
        """H of the mean pmf.  [t]"""
        return entropy(self.mean_pmf)

    @cached_property
    def network_entropy(self) -> np.ndarray:
        """H of each network's pmf.  [t, c]"""
        return -(self.pmf * self.log_pmf).sum(axis=-1)

    @cached_property
    def disagreement(self) -> np.ndarray:
        """Mutual information between class and network: H of the mean minus mean H.  [t]"""
        return np.maximum(self.entropy - self.network_entropy.mean(axis=1), 0.0)

    @cached_property
    def energy(self) -> np.ndarray:
        """log-sum-exp of the mean-centred logits, mean over networks: large for a sure view.  [t]"""
        # shifted has its largest at 0, so lse(centred) = ln(sum exp shifted) - mean(shifted)
        return (np.log(self._powers[1][..., 0]) - self.shifted.mean(axis=-1)).mean(axis=1)

    @cached_property
    def top(self) -> np.ndarray:
        """The most probable class of the mean pmf.  [t] int"""
        return self.mean_pmf.argmax(axis=-1)

    @cached_property
    def bounded_features(self) -> np.ndarray:
        """The features in double precision, within HIGHEST_FEATURE.  [t, c, D]"""
        return np.clip(np.asarray(self.features, np.float64), -HIGHEST_FEATURE, HIGHEST_FEATURE)

    @cached_property
    def feature_norm(self) -> np.ndarray:
        """ln of the norm of the features, mean over networks.  [t]"""
        squares = np.einsum("tcd,tcd->tc", self.bounded_features, self.bounded_features)
        return 0.5 * np.log(np.maximum(squares, 1e-60)).mean(axis=1)

    @cached_property
    def laplace_variance(self) -> np.ndarray:
        """Laplace variance of every logit (eq. linearizeCov), the views' own or computed here.  [t, c, m]"""
        if self.variance is not None:
            return np.asarray(self.variance, np.float64)
        return self.posterior.variance(self.bounded_features)

    def top_variance(self, prior: float | None = None) -> np.ndarray:
        """Laplace variance of the most probable class; `prior` as below, None: as calibrated.  [t, c]"""
        if prior is None and self.variance is not None:
            return np.take_along_axis(self.laplace_variance, self.top[:, None, None], axis=-1)[..., 0]
        posterior = self.posterior if prior is None else posterior_under(self.posterior, prior)
        return posterior.variance_of(self.bounded_features, self.top)

    @cached_property
    def _under(self) -> dict[float, np.ndarray]:
        return {}

    def variance_under(self, prior: float) -> np.ndarray:
        """phi^T A_m^-1 phi with another prior precision (lambda_w of METHOD 3) and T_theta = 1.  [t, c, m]"""
        if prior not in self._under:
            self._under[prior] = posterior_under(self.posterior, prior).variance(self.bounded_features)
        return self._under[prior]


# The posteriors last asked for under another prior: factorising one takes far longer than fusing a frame.
_RECENT: dict[tuple[int, float], tuple[EnsemblePosterior, EnsemblePosterior]] = {}
_KEPT = 4


def posterior_under(posterior: EnsemblePosterior, prior: float) -> EnsemblePosterior:
    """The posterior with another prior precision and T_theta = 1, remembered for the next frame."""
    key = (id(posterior), prior)
    found = _RECENT.get(key)
    if found is None or found[0] is not posterior:
        while len(_RECENT) >= _KEPT:
            _RECENT.pop(next(iter(_RECENT)))
        found = _RECENT[key] = (posterior, posterior.with_prior(prior).with_temperature(1.0))
    return found[1]


def measured(views: Views, posterior: EnsemblePosterior) -> MeasuredViews:
    """Check views once; views that were measured for this posterior pass through untouched."""
    if isinstance(views, MeasuredViews) and views.posterior is posterior:
        return views
    return MeasuredViews(views, posterior)


def zero_views(posterior: EnsemblePosterior) -> MeasuredViews:
    """One view of one track, all zeros: for warming up."""
    shape = (1, posterior.networks)
    return measured(
        Views(np.zeros((*shape, posterior.classes)), np.zeros((*shape, posterior.features))), posterior
    )
