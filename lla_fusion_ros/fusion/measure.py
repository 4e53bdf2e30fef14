"""What a view tells about itself: the quantities that fusers and warnings share, each computed once.

All of them ignore a constant added to the logits of a view (the gauge that softmax ignores): logits are
used mean-centred or through the pmf, never raw.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.once import once
from lla_fusion_ros.pmf import entropy
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.views import Views

# A class that lies this far below the best one has a probability of e^-1000: clipping there changes no
# pmf and keeps every sum finite, whatever finite number a network may put out.
LOWEST_LOGIT = -1000.0
# Far beyond any network's features, small enough that squares and long sums of them stay finite.
HIGHEST_FEATURE = 1e30
# Below these the sums of the shifted logits and of the squared features rule out all of that.  [2, 1, 1]
ORDINARY = np.array([-LOWEST_LOGIT, HIGHEST_FEATURE]).reshape(2, 1, 1)


class MeasuredViews(Views):
    """Checked views whose derived quantities are computed when first asked for, then kept.

    A frame is small, so its cost is the number of numpy calls, not of numbers: the sums that everything
    needs also tell whether anything is wrong, and only then are the slow checks made.
    Axes: t tracks, c networks, m classes.
    """

    posterior: EnsemblePosterior
    shifted: np.ndarray  # max-shifted logits (eq. shifted_softmax), clipped at LOWEST_LOGIT.  [t, c, m]
    bounded_features: np.ndarray  # in double precision, within HIGHEST_FEATURE.  [t, c, D]
    _sums: np.ndarray  # of the shifted logits, of the squared bounded features.  [2, t, c]

    def __init__(self, views: Views, posterior: EnsemblePosterior) -> None:
        views.check_shapes(posterior.networks, posterior.classes, posterior.features)
        if views.variance is not None:
            _check_variance(views)
        logits, features = views.logits, np.asarray(views.features, np.float64)
        set_field = object.__setattr__  # Views are frozen
        set_field(self, "logits", logits)
        set_field(self, "features", views.features)
        set_field(self, "variance", views.variance)
        set_field(self, "posterior", posterior)
        sums = np.empty((2, *logits.shape[:2]))
        with np.errstate(over="ignore", invalid="ignore"):
            shifted = np.subtract(logits, np.maximum.reduce(logits, axis=-1, keepdims=True), dtype=np.float64)
            _sum_up(shifted, features, sums)
            ordinary = np.count_nonzero(np.abs(sums) < ORDINARY) == sums.size
        if not ordinary:  # very unlikely classes, huge features, or NaN and infinity
            self.check_finite()
            np.maximum(shifted, LOWEST_LOGIT, out=shifted)
            features = np.clip(features, -HIGHEST_FEATURE, HIGHEST_FEATURE)
            _sum_up(shifted, features, sums)
        set_field(self, "shifted", shifted)
        set_field(self, "bounded_features", features)
        set_field(self, "_sums", sums)

    @once
    def centred(self) -> np.ndarray:
        """Mean-centred logits zc.  [t, c, m]"""
        return self.shifted - (self._sums[0] / self.classes)[..., None]

    @once
    def _powers(self) -> np.ndarray:
        return np.exp(self.shifted)

    @once
    def _total(self) -> np.ndarray:
        return np.add.reduce(self._powers, axis=-1)  # [t, c]

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

    def tempered_pmf(self, temperature: float) -> np.ndarray:
        """Mean over networks of the temperature-scaled pmfs (eq. temp_scaling_fm).  [t, m]"""
        if temperature == 1.0:
            return self.mean_pmf
        powers = np.exp(self.shifted / temperature)
        return _mean_softmax(powers, np.add.reduce(powers, axis=-1))

    @once
    def mean_centred(self) -> np.ndarray:
        """Mean over networks of the mean-centred logits.  [t, m]"""
        return network_mean(self.shifted) - self._summary[:, :1]

    @once
    def entropy(self) -> np.ndarray:
        """H of the mean pmf.  [t]"""
        return entropy(self.mean_pmf)

    @once
    def network_entropy(self) -> np.ndarray:
        """H of each network's pmf, ln sum e^z - sum p z.  [t, c]"""
        return np.log(self._total) - np.einsum("tcm,tcm->tc", self.pmf, self.shifted)

    @once
    def mean_network_entropy(self) -> np.ndarray:
        """H of each network's pmf, mean over networks.  [t]"""
        return network_mean(self.network_entropy)

    @once
    def _summary(self) -> np.ndarray:
        """Mean of the shifted logits over classes and networks, and the signs.  [t, 1 + signs]"""
        tracks, networks, classes = self.shifted.shape
        each = np.empty((tracks, 4, networks))  # what each network has of its own, in this order:
        each[:, 0] = self._sums[0]  # sum of the shifted logits
        np.log(self._total, out=each[:, 1])  # ln sum e^z
        np.divide(
            np.einsum("tcm,tcm->tc", self._powers, self.shifted), self._total, out=each[:, 2]
        )  # sum p z
        np.log(np.maximum(self._sums[1], 1e-60), out=each[:, 3])  # ln |phi|^2
        table = each.reshape(tracks, 4 * networks) @ _means_of_networks(networks, classes)
        table[:, 1] = self.entropy
        table[:, 4] += self.entropy
        np.maximum(table[:, 4], 0.0, out=table[:, 4])
        return table

    @property
    def signs(self) -> np.ndarray:
        """entropy, energy, feature_norm and disagreement side by side.  [t, 4]"""
        return self._summary[:, 1:]

    @property
    def energy(self) -> np.ndarray:
        """log-sum-exp of the mean-centred logits, mean over networks: large for a sure view.  [t]"""
        return self._summary[:, 2]

    @property
    def feature_norm(self) -> np.ndarray:
        """ln of the norm of the features, mean over networks.  [t]"""
        return self._summary[:, 3]

    @property
    def disagreement(self) -> np.ndarray:
        """Mutual information between class and network: H of the mean minus mean H.  [t]"""
        return self._summary[:, 4]

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
        return posterior.variance_of(self.bounded_features, self.top)

    @once
    def _under(self) -> dict[float, np.ndarray]:
        return {}

    def variance_under(self, prior: float) -> np.ndarray:
        """phi^T A_m^-1 phi with another prior precision (lambda_w of METHOD 3) and T_theta = 1.  [t, c, m]"""
        if prior not in self._under:
            variance = posterior_under(self.posterior, prior).single_variance(self.features)
            self._under[prior] = variance.astype(np.float64)
        return self._under[prior]


def network_mean(array: np.ndarray) -> np.ndarray:
    """The mean over networks.  [t, c, ...] -> [t, ...]"""
    return np.add.reduce(array, axis=1) * (1.0 / array.shape[1])


def _mean_softmax(powers: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The mean over networks of e^z / sum e^z, as one product.  [t, c, m], [t, c] -> [t, m]"""
    return np.matmul((1.0 / powers.shape[1] / total)[:, None], powers)[:, 0]


def _sum_up(shifted: np.ndarray, features: np.ndarray, out: np.ndarray) -> None:
    """The sums of MeasuredViews.  [2, t, c]"""
    np.add.reduce(shifted, axis=-1, out=out[0])
    np.einsum("tcd,tcd->tc", features, features, out=out[1])


@lru_cache(maxsize=8)
def _means_of_networks(networks: int, classes: int) -> np.ndarray:
    """From what each network has of its own to the columns of MeasuredViews._summary.

    The entropy of the mean pmf is left at zero and the disagreement at minus the mean entropy of the
    networks. ln sum e^z of the centred logits is that of the shifted ones minus their mean.
    [4 * networks, 1 + signs]
    """
    logits, log_total, expected, log_square = range(4)
    mean = np.zeros((4, 5))
    mean[logits, 0] = 1.0 / classes
    mean[log_total, 2], mean[logits, 2] = 1.0, -1.0 / classes
    mean[log_square, 3] = 0.5
    mean[log_total, 4], mean[expected, 4] = -1.0, 1.0
    return np.repeat(mean / networks, networks, axis=0)


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
