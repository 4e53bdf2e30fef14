"""What a view tells about itself: the quantities that fusers and warnings share, each computed once.

All of them ignore a constant added to the logits of a view (the gauge that softmax ignores): logits are
used mean-centred or through the pmf, never raw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import entropy, probit, softmax
from lla_fusion_ros.types.views import Views

# A class that lies this far below the best one has a probability of e^-1000: clipping there changes no
# pmf and keeps every sum finite, whatever finite number a network may put out.
LOWEST_LOGIT = -1000.0
# Far beyond any network's features, small enough that squares and long sums of them stay finite.
HIGHEST_FEATURE = 1e30
# Of boxes, in image pixels: what views count as whose box is not known, and where a weight stops to change.
USUAL_SIZE, SIZES = 20.0, (4.0, 200.0)
# Of a view's quality. None looks at another view; a bundle stores one coefficient for each, in this order.
QUALITY_FEATURES = ("entropy", "energy", "log_norm", "log_variance", "disagreement")


@dataclass(frozen=True)  # no slots: cached_property keeps its value in the instance
class MeasuredViews(Views):
    """Checked views whose derived quantities are computed when first asked for, then kept.

    Axes: t tracks, c networks, m classes.
    """

    posterior: EnsemblePosterior = field(kw_only=True)

    def __post_init__(self) -> None:
        p = self.posterior
        self.check(p.networks, p.classes, p.features)

    @cached_property
    def shifted(self) -> np.ndarray:
        """Max-shifted logits (eq. 11), at least LOWEST_LOGIT.  [t, c, m]"""
        logits = np.asarray(self.logits, np.float64)
        with np.errstate(over="ignore"):
            shifted = logits - logits.max(axis=-1, keepdims=True)
        return np.maximum(shifted, LOWEST_LOGIT)

    @cached_property
    def log_size(self) -> np.ndarray:
        """ln of the box's side over USUAL_SIZE; 0 where it is not known.  [t]"""
        if self.size is None:
            return np.zeros(len(self))
        side = np.asarray(self.size, np.float64)
        return np.log(np.where(side > 0, side, USUAL_SIZE).clip(*SIZES) / USUAL_SIZE)

    @cached_property
    def bounded_features(self) -> np.ndarray:
        """In double precision, within HIGHEST_FEATURE.  [t, c, D]"""
        return np.asarray(self.features, np.float64).clip(-HIGHEST_FEATURE, HIGHEST_FEATURE)

    @cached_property
    def centred(self) -> np.ndarray:
        """Mean-centred logits zc.  [t, c, m]"""
        return self.shifted - self.shifted.mean(axis=-1, keepdims=True)

    @cached_property
    def mean_centred(self) -> np.ndarray:
        """Mean over networks of the mean-centred logits.  [t, m]"""
        return self.centred.mean(axis=1)

    @cached_property
    def pmf(self) -> np.ndarray:
        """p_lc of each network (eq. 3).  [t, c, m]"""
        return softmax(self.shifted)

    @cached_property
    def log_pmf(self) -> np.ndarray:
        """ln p_lc, at least LOWEST_LOGIT - ln m.  [t, c, m]"""
        return self.shifted - np.log(np.exp(self.shifted).sum(axis=-1, keepdims=True))

    @cached_property
    def mean_pmf(self) -> np.ndarray:
        """The deep ensemble's pmf: mean over networks.  [t, m]"""
        return self.pmf.mean(axis=1)

    @cached_property
    def top(self) -> np.ndarray:
        """The most probable class of the mean pmf.  [t] int"""
        return self.mean_pmf.argmax(axis=-1)

    @cached_property
    def entropy(self) -> np.ndarray:
        """H of the mean pmf.  [t]"""
        return entropy(self.mean_pmf)

    @cached_property
    def network_entropy(self) -> np.ndarray:
        """H of each network's pmf.  [t, c]"""
        return entropy(self.pmf)

    @cached_property
    def disagreement(self) -> np.ndarray:
        """Mutual information between class and network: H of the mean pmf minus the mean H.  [t]"""
        return np.maximum(self.entropy - self.network_entropy.mean(axis=1), 0.0)

    @cached_property
    def energy(self) -> np.ndarray:
        """Log-sum-exp of the mean-centred logits, mean over networks; large for a sure view.  [t]"""
        # shifted logits have their largest at 0: no power overflows
        powers = np.exp(self.shifted).sum(axis=-1)
        return (np.log(powers) - self.shifted.mean(axis=-1)).mean(axis=1)

    @cached_property
    def log_norm(self) -> np.ndarray:
        """ln |phi|, mean over networks.  [t]"""
        norms = np.sqrt((self.bounded_features**2).sum(axis=-1))
        return np.log(np.maximum(norms, 1e-30)).mean(axis=1)

    @cached_property
    def laplace_variance(self) -> np.ndarray:
        """Laplace variance of every logit (eq. 17c).  [t, c, m]"""
        return self.posterior.single_variance(self.features).astype(np.float64)

    @cached_property
    def mean_laplace_pmf(self) -> np.ndarray:
        """Mean over networks of E[softmax(z)] under each view's Laplace Gaussian, closed form.  [t, m]"""
        return probit(self.shifted, self.laplace_variance).mean(axis=1)

    def top_variance(self, prior: float | None = None) -> np.ndarray:
        """Laplace variance of the most probable class; `prior` as below, None: as calibrated.  [t, c]"""
        posterior = self.posterior if prior is None else posterior_under(self.posterior, prior)
        return posterior.variance_of(self.features, self.top)

    def variance_under(self, prior: float) -> np.ndarray:
        """phi^T A_m^-1 phi with another prior precision (lambda_w) and T_theta = 1.  [t, c, m]"""
        return posterior_under(self.posterior, prior).single_variance(self.features).astype(np.float64)

    @cached_property
    def _weighed(self) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        return {}

    def weighed_under(self, prior: float) -> tuple[np.ndarray, np.ndarray]:
        """1/V and zc/V with V the variance under `prior`, summed over networks.  2 x [t, m]"""
        if prior not in self._weighed:  # a fit asks for the same prior again and again
            precision = 1.0 / np.maximum(self.variance_under(prior), 1e-12)  # [t, c, m]
            self._weighed[prior] = precision.sum(axis=1), (precision * self.centred).sum(axis=1)
        return self._weighed[prior]


def quality_features(views: MeasuredViews, prior: float | None = None, variance: bool = True) -> np.ndarray:
    """[t, features], in the order of QUALITY_FEATURES; without `variance` that column holds zeros.

    `prior` is the prior precision of the Laplace variance among them, None that of the posterior. A large one
    makes the variance a mere norm of the features; under a small one it tells how unlike the training views
    of the predicted class a view is.
    """
    log_variance = np.zeros(len(views))
    if variance:
        log_variance = np.log(np.maximum(views.top_variance(prior), 1e-12)).mean(axis=1)
    return np.stack([views.entropy, views.energy, views.log_norm, log_variance, views.disagreement], axis=1)


@lru_cache(maxsize=4)  # to factorise a posterior takes far longer than to fuse a frame
def posterior_under(posterior: EnsemblePosterior, prior: float) -> EnsemblePosterior:
    """The posterior with another prior precision and T_theta = 1."""
    return posterior.with_prior(prior).with_temperature(1.0)


def measured(views: Views, posterior: EnsemblePosterior) -> MeasuredViews:
    """Check views once; views that were measured for this posterior pass through untouched."""
    if isinstance(views, MeasuredViews) and views.posterior is posterior:
        return views
    return MeasuredViews(views.logits, views.features, views.quality, views.size, posterior=posterior)


def zero_views(posterior: EnsemblePosterior) -> MeasuredViews:
    """One view of one track, all zeros: for warming up."""
    shape = (1, posterior.networks)
    return measured(
        Views(np.zeros((*shape, posterior.classes)), np.zeros((*shape, posterior.features))), posterior
    )
