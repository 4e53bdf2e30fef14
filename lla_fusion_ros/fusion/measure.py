"""What a view tells about itself: the quantities that fusers and warnings share, each computed once.

All of them ignore a constant added to the logits of a view (the gauge that softmax ignores): logits are
used mean-centred or through the pmf, never raw.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.once import once
from lla_fusion_ros.pmf import entropy, shifted_probit
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.products import (
    constant,
    last_axis_mean,
    last_axis_sum,
    row_norms,
    square_sum,
    weighted_sum,
)
from lla_fusion_ros.views import Views

# A class that lies this far below the best one has a probability of e^-1000: clipping there changes no
# pmf and keeps every sum finite, whatever finite number a network may put out.
LOWEST_LOGIT = -1000.0
# Far beyond any network's features, small enough that squares and long sums of them stay finite.
HIGHEST_FEATURE = 1e30


class MeasuredViews(Views):
    """Checked views whose derived quantities are computed when first asked for, then kept.

    A frame is small, so its cost is the number of numpy calls, not of numbers: the sums that everything
    needs also tell whether anything is wrong, and only then are the slow checks made.
    Axes: t tracks, c networks, m classes.
    """

    posterior: EnsemblePosterior
    shifted: np.ndarray  # max-shifted logits (eq. shifted_softmax), clipped at LOWEST_LOGIT.  [t, c, m]
    bounded_features: np.ndarray  # in double precision, within HIGHEST_FEATURE.  [t, c, D]
    _sums: np.ndarray  # of the shifted logits over classes.  [t, c]

    def __init__(self, views: Views, posterior: EnsemblePosterior) -> None:
        views.check_shapes(*posterior.factors.shape[:3])
        if views.variance is not None:
            _check_variance(views)
        logits, features = views.logits, np.asarray(views.features, np.float64)
        set_field = object.__setattr__  # Views are frozen
        set_field(self, "logits", logits)
        set_field(self, "features", views.features)
        set_field(self, "variance", views.variance)
        set_field(self, "posterior", posterior)
        size = square_sum(logits)
        if size < HIGHEST_FEATURE and square_sum(features) < HIGHEST_FEATURE:
            shifted = _shifted(logits)
        else:  # huge numbers, or NaN and infinity
            self.check_finite()
            with np.errstate(over="ignore"):
                shifted = np.maximum(_shifted(logits), LOWEST_LOGIT)
            features = np.clip(features, -HIGHEST_FEATURE, HIGHEST_FEATURE)
        sums = last_axis_sum(shifted)  # no term is above 0
        # Very unlikely classes. As (a - b)^2 <= 2 (a^2 + b^2), small logits cannot lie so far apart.
        if not 2.0 * size < LOWEST_LOGIT**2 and np.count_nonzero(sums > LOWEST_LOGIT) < sums.size:
            np.maximum(shifted, LOWEST_LOGIT, out=shifted)
            sums = last_axis_sum(shifted)
        set_field(self, "shifted", shifted)
        set_field(self, "bounded_features", features)
        set_field(self, "_sums", sums)

    @once
    def centred(self) -> np.ndarray:
        """Mean-centred logits zc.  [t, c, m]"""
        return self.shifted - (self._sums / self.classes)[..., None]

    @once
    def _powers(self) -> np.ndarray:
        return np.exp(self.shifted)

    @once
    def _total(self) -> np.ndarray:
        return last_axis_sum(self._powers)  # [t, c]

    @once
    def pmf(self) -> np.ndarray:
        """p_lc of each network (eq. individual_pmf).  [t, c, m]"""
        return self._powers / self._total[..., None]

    @once
    def log_pmf(self) -> np.ndarray:
        """ln p_lc, at least LOWEST_LOGIT - ln m.  [t, c, m]"""
        return self.shifted - np.log(self._total)[..., None]

    @once
    def mean_pmf(self) -> np.ndarray:
        """The deep ensemble's pmf: mean over networks.  [t, m]"""
        return _mean_softmax(self._powers, self._total)

    def tempered_pmf(self, temperature: float, benefit: np.ndarray | None = None) -> np.ndarray:
        """Mean over networks of the temperature-scaled pmfs (eq. temp_scaling_fm).  [t, m]

        `benefit` is added to the scaled logits of every class.  [m]
        """
        if temperature == 1.0 and benefit is None:
            return self.mean_pmf
        scaled = self.shifted / temperature
        powers = np.exp(scaled if benefit is None else scaled + benefit)
        return _mean_softmax(powers, last_axis_sum(powers))

    @once
    def mean_centred(self) -> np.ndarray:
        """Mean over networks of the mean-centred logits.  [t, m]"""
        return network_mean(self.shifted) - self._means[:, :1]

    @once
    def entropy(self) -> np.ndarray:
        """H of the mean pmf.  [t]"""
        return entropy(self.mean_pmf)

    @once
    def network_entropy(self) -> np.ndarray:
        """H of each network's pmf, ln sum e^z - sum p z.  [t, c]"""
        return np.log(self._total) - last_axis_sum(self._powers * self.shifted) / self._total

    @once
    def mean_network_entropy(self) -> np.ndarray:
        """H of each network's pmf, mean over networks.  [t]"""
        return last_axis_mean(self.network_entropy)

    @once
    def _means(self) -> np.ndarray:
        """Means over networks of what each network has of its own, all in one product.  [t, 4]

        In this order: mean of the shifted logits, energy, ln |phi|, minus the entropy of its pmf.
        """
        tracks, networks, classes = self.shifted.shape
        table = np.empty((tracks, 4, networks))
        table[:, 0] = self._sums
        np.divide(last_axis_sum(self._powers * self.shifted), self._total, out=table[:, 1])  # sum p z
        table[:, 2] = self._total
        table[:, 3] = row_norms(self.bounded_features)
        logarithms = table[:, 2:]
        np.log(np.maximum(logarithms, 1e-60), out=logarithms)  # no total is below 1
        return table.reshape(tracks, 4 * networks).dot(_to_means(networks, classes))

    @once
    def signs(self) -> np.ndarray:
        """entropy, energy, ln |phi| and disagreement side by side.  [t, 4]

        The energy is the log-sum-exp of the mean-centred logits, large for a sure view; it and ln |phi| are
        means over networks. The disagreement is the mutual information between class and network: H of the
        mean pmf minus the mean H.
        """
        signs = self._means.copy()
        signs[:, 0] = self.entropy
        np.maximum(signs[:, 3] + self.entropy, 0.0, out=signs[:, 3])
        return signs

    @property
    def energy(self) -> np.ndarray:
        """Of `signs`.  [t]"""
        return self.signs[:, 1]

    @property
    def log_norm(self) -> np.ndarray:
        """Of `signs`.  [t]"""
        return self.signs[:, 2]

    @property
    def disagreement(self) -> np.ndarray:
        """Of `signs`.  [t]"""
        return self.signs[:, 3]

    @once
    def top(self) -> np.ndarray:
        """The most probable class of the mean pmf.  [t] int"""
        return self.mean_pmf.argmax(axis=-1)

    @once
    def laplace_variance(self) -> np.ndarray:
        """Laplace variance of every logit (eq. linearizeCov), the views' own or computed here.  [t, c, m]"""
        if self.variance is not None:
            return np.asarray(self.variance, np.float64)
        return self.posterior.single_variance(self.features).astype(np.float64)

    def top_variance(self, prior: float | None = None) -> np.ndarray:
        """Laplace variance of the most probable class; `prior` as below, None: as calibrated.  [t, c]"""
        if prior is None and self.variance is not None:
            return np.take_along_axis(self.laplace_variance, self.top[:, None, None], axis=-1)[..., 0]
        posterior = self.posterior if prior is None else posterior_under(self.posterior, prior)
        return posterior.variance_of(self.features, self.top)

    @once
    def mean_laplace_pmf(self) -> np.ndarray:
        """Mean over networks of E[softmax(z)] under each view's Laplace Gaussian, closed form.  [t, m]"""
        return network_mean(shifted_probit(self.shifted, self.laplace_variance))

    def variance_under(self, prior: float) -> np.ndarray:
        """phi^T A_m^-1 phi with another prior precision (lambda_w of METHOD 3) and T_theta = 1.  [t, c, m]"""
        variance = posterior_under(self.posterior, prior).single_variance(self.features)
        return variance.astype(np.float64)

    @once
    def _weighed(self) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        return {}

    def weighed_under(self, prior: float) -> tuple[np.ndarray, np.ndarray]:
        """1/V and zc/V with V the variance under `prior`, summed over networks.  2 x [t, m]"""
        if prior not in self._weighed:
            precision = 1.0 / np.maximum(self.variance_under(prior), 1e-12)  # [t, c, m]
            evidence = np.einsum("tcm,tcm->tm", precision, self.centred)
            self._weighed[prior] = np.add.reduce(precision, axis=1), evidence
        return self._weighed[prior]


@lru_cache(maxsize=16)
def _to_means(networks: int, classes: int) -> np.ndarray:
    """What to multiply the table of `MeasuredViews._means` by.  [4 networks, 4], read-only"""
    # shifted has its largest at 0, so lse(centred) = ln(sum exp shifted) - mean(shifted)
    of_one = np.array(
        [  # mean, energy, ln |phi|, minus entropy
            [1.0 / classes, -1.0 / classes, 0.0, 0.0],  # sum of the shifted logits
            [0.0, 0.0, 0.0, 1.0],  # sum p z
            [0.0, 1.0, 0.0, -1.0],  # ln sum e^z
            [0.0, 0.0, 0.5, 0.0],  # ln |phi|^2
        ]
    )
    product = np.repeat(of_one / networks, networks, axis=0)
    product.flags.writeable = False
    return product


def network_mean(array: np.ndarray) -> np.ndarray:
    """The mean over networks.  [t, c, n] -> [t, n]"""
    tracks, networks, _ = array.shape
    share = constant(networks, 1.0 / networks, array.dtype)
    # as in weighted_sum: the most frequent frame has one track
    return share.dot(array[0])[None] if tracks == 1 else np.matmul(share, array)


def _mean_softmax(powers: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The mean over networks of e^z / sum e^z.  [t, c, m], [t, c] -> [t, m]"""
    return weighted_sum((1.0 / powers.shape[1]) / total, powers)


def _shifted(logits: np.ndarray) -> np.ndarray:
    return np.subtract(logits, np.maximum.reduce(logits, axis=-1, keepdims=True), dtype=np.float64)


def _check_variance(views: Views) -> None:
    variance = views.variance
    assert variance is not None
    if variance.shape != views.logits.shape:
        raise InputError(f"views.variance has shape {variance.shape}, expected {views.logits.shape}")
    if not (np.isfinite(variance).all() and (variance >= 0).all()):
        raise InputError("views.variance must be finite and not negative")


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
