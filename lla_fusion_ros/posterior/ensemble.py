"""The posterior of all networks at inference time: last layer, one block per class.

For network c and class m the paper's Fisher information (eq. 16) plus the prior is

    A_m = sum_n eta_mn phi_n phi_n^T + P0^-1 = L_m L_m^T                    [features, features]

and everything a fuser asks for is a dot product of footprints v_m = L_m^-1 phi (eq. 17c):

    Cov(z_im, z_jm) = T_theta v_im . v_jm          views i, j of one network; 0 between classes

Between two networks c, e trained on the same data (the block R_{i,j} of eq. 22,
which the paper leaves open) it is T_theta v_cm^T (L_cm^-1 B_ce L_em^-T) v_em with
B_ce = sum_n eta_mn phi_cn phi_en^T. Without `cross` the networks count as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from lla_fusion_ros.posterior.single_variance import ClassVariance, SingleVariance
from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, eq=False)  # compared as an object; no slots: cached_property keeps values in it
class EnsemblePosterior:
    """Gaussian posterior of the last layers of several networks, classes decoupled.

    Attributes:
        factors: lower Cholesky factors L_m of A_m, prior included.   [networks, classes, features, features]
        prior_precision: P0^-1 = prior_precision * I.
        temperature: T_theta, the scale of every variance; 0 switches the Laplace term off.
        cross: B_ce of every ordered pair c, e (its diagonal blocks hold no prior and are never read), or
            None where networks are assumed independent.   [networks, networks, classes, features, features]
    """

    factors: np.ndarray
    prior_precision: float
    temperature: float = 1.0
    cross: np.ndarray | None = None

    def __post_init__(self) -> None:
        shape = self.factors.shape
        if self.factors.ndim != 4 or shape[2] != shape[3]:
            raise InputError(f"posterior factors have shape {shape}, expected [networks, classes, D, D]")
        if not np.isfinite(self.factors).all():
            raise InputError("posterior factors contain NaN or infinity")
        if not (np.diagonal(self.factors, axis1=2, axis2=3) > 0).all():
            raise InputError("posterior factors must be Cholesky factors: a diagonal entry is not positive")
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"posterior temperature is {self.temperature}, it must be finite and >= 0")
        if self.cross is not None and self.cross.shape != (shape[0], *shape):
            raise InputError(f"cross blocks have shape {self.cross.shape}, expected {(shape[0], *shape)}")

    @property
    def networks(self) -> int:
        return self.factors.shape[0]

    @property
    def classes(self) -> int:
        return self.factors.shape[1]

    @property
    def features(self) -> int:
        """D: the width of the last hidden layer plus one for the bias."""
        return self.factors.shape[2]

    def inverse_factors(self) -> np.ndarray:
        """L_m^-1, lower triangular.   [networks, classes, features, features]"""
        eye = np.eye(self.features)
        flat = np.asarray(self.factors, np.float64).reshape(-1, self.features, self.features)
        inverse = np.stack([solve_triangular(factor, eye, lower=True) for factor in flat])
        return inverse.reshape(self.factors.shape)

    @cached_property
    def rarity(self) -> np.ndarray:
        """How little the training data left in doubt about each class, at mean 0 and spread 1.  [classes]

        -ln tr(A_m - P0^-1), mean over networks. The trace, sum_n f_m (1 - f_m) |phi_n|^2, is the Fisher
        information of the training data about the class, prior apart: small for a class of few examples or
        one that nothing is mistaken for, large for one that networks fall back on when in doubt.
        """
        factors = np.asarray(self.factors, np.float64)
        information = np.einsum("cmde,cmde->cm", factors, factors) - self.prior_precision * self.features
        # of a class that was never in doubt nothing but rounding may be left
        least = np.maximum(1e-6 * information.max(axis=1, keepdims=True), 1e-12)
        rarity = -np.log(np.maximum(information, least)).mean(axis=0)
        spread = rarity.std()
        return (rarity - rarity.mean()) / spread if spread > 1e-9 else np.zeros(self.classes)

    @cached_property
    def _whitening(self) -> np.ndarray:
        """L_m^-1 of all classes side by side, so that one product whitens for every class.

        [networks, features, classes * features]
        """
        columns = self.inverse_factors().transpose(0, 3, 1, 2)
        return np.ascontiguousarray(columns).reshape(self.networks, self.features, -1)

    @cached_property
    def mean_whitening(self) -> np.ndarray:
        """B with B B^T the mean over classes of A_m^-1: |B^T phi|^2 is the mean variance of a view's logits.

        Without T_theta, so that it also compares views where the Laplace term is off.   [networks, D, D]
        """
        inverse = self.inverse_factors()  # A_m^-1 = L_m^-T L_m^-1
        return np.linalg.cholesky(np.einsum("cmkd,cmke->cde", inverse, inverse) / self.classes)

    @cached_property
    def whitened_cross(self) -> np.ndarray:
        """G_ce = L_c^-1 B_ce L_e^-T, identity for c = e.   [networks, networks, classes, D, D]"""
        assert self.cross is not None
        inverse = self.inverse_factors()
        whitened = inverse[:, None] @ self.cross @ inverse[None].swapaxes(-1, -2)
        for network in range(self.networks):
            whitened[network, network] = np.eye(self.features)
        return shrunk_to_psd(whitened)

    def footprint(self, features: np.ndarray) -> np.ndarray:
        """v_m = L_m^-1 phi of every view.  [..., networks, features] -> [..., networks, classes, features]"""
        if features.shape[-2:] != (self.networks, self.features):
            raise InputError(
                f"features have shape {features.shape}, expected [..., {self.networks}, {self.features}]"
            )
        flat = np.asarray(features, np.float64).reshape(-1, self.networks, self.features)
        prints = flat.swapaxes(0, 1) @ self._whitening  # [networks, n, classes * features]
        shape = (*features.shape[:-2], self.networks, self.classes, self.features)
        return prints.transpose(1, 0, 2).reshape(shape)

    def variance(self, features: np.ndarray) -> np.ndarray:
        """T_theta phi^T A_m^-1 phi, the diagonal of eq. 17c.

        [..., networks, features] -> [..., networks, classes]
        """
        prints = self.footprint(features)
        return self.temperature * np.einsum("...d,...d->...", prints, prints)

    @cached_property
    def variance_of(self) -> ClassVariance:
        """The variance of one class of each view, in float32 and at 1 / classes of the work: for every frame.

        [n, networks, features], [n] int -> [n, networks]
        """
        return ClassVariance(self)

    @cached_property
    def single_variance(self) -> SingleVariance:
        """The same in float32, several times as fast: for every frame.  [n, networks, features]"""
        return SingleVariance(self)

    def covariance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Covariance of the logits of two views, for every pair of networks; classes decouple.

        2 x [..., networks, features] -> [..., networks (of first), networks (of second), classes]
        """
        v, w = self.footprint(first), self.footprint(second)
        if self.cross is not None:
            return self.temperature * np.einsum(
                "...cmd,cemdf,...emf->...cem", v, self.whitened_cross, w, optimize=True
            )
        same = np.einsum("...cmd,...cmd->...cm", v, w)
        out = np.zeros((*same.shape[:-2], self.networks, self.networks, self.classes))
        own = np.arange(self.networks)
        out[..., own, own, :] = self.temperature * same
        return out

    def joint_covariance(self, features: np.ndarray) -> np.ndarray:
        """R of eq. 22, class by class, for all views of one object.

        Rows run over networks first, then views, as the paper stacks zeta.
        [views, networks, features] -> [classes, networks * views, networks * views]
        """
        views = len(features)
        prints = self.footprint(features).transpose(1, 2, 0, 3)  # [networks, classes, views, features]
        out = np.zeros((self.classes, self.networks, views, self.networks, views))
        for c in range(self.networks):
            out[:, c, :, c] = prints[c] @ prints[c].swapaxes(-1, -2)
            if self.cross is None:
                continue
            for e in range(c):
                block = prints[c] @ self.whitened_cross[c, e] @ prints[e].swapaxes(-1, -2)
                out[:, c, :, e] = block
                out[:, e, :, c] = block.swapaxes(-1, -2)
        side = self.networks * views
        return self.temperature * out.reshape(self.classes, side, side)

    def with_prior(self, precision: float) -> EnsemblePosterior:
        """The same data under another prior (lambda_w of `wls_robust`): A_m + (precision - old) I."""
        if not (np.isfinite(precision) and precision > 0):
            raise InputError(f"prior precision is {precision}, it must be finite and > 0")
        factors = np.asarray(self.factors, np.float64)
        data = factors @ factors.swapaxes(-1, -2) - self.prior_precision * np.eye(self.features)
        return replace(self, factors=factor_with_prior(data, precision), prior_precision=float(precision))

    def with_temperature(self, temperature: float) -> EnsemblePosterior:
        """The same posterior with another T_theta."""
        return replace(self, temperature=float(temperature))

    def select(self, networks: Sequence[int]) -> EnsemblePosterior:
        """The posterior of some of the networks, in the given order."""
        chosen = np.asarray(networks, int)
        if chosen.size == 0 or chosen.min() < 0 or chosen.max() >= self.networks:
            raise InputError(f"cannot select networks {list(networks)} of an ensemble of {self.networks}")
        cross = None if self.cross is None else self.cross[np.ix_(chosen, chosen)]
        return replace(self, factors=self.factors[chosen], cross=cross)

    def independent(self) -> EnsemblePosterior:
        """The same networks assumed independent: zero covariance between different networks."""
        return replace(self, cross=None)


def factor_with_prior(data: np.ndarray, precision: float) -> np.ndarray:
    """Cholesky factors of `data` + precision I, where `data` is a sum of outer products up to rounding.

    Rounding (or a posterior stored in float32) can leave `data` slightly indefinite; eigenvalues below zero
    are then set to zero, which is what exact arithmetic would have given.   [..., D, D] -> [..., D, D]
    """
    eye = np.eye(data.shape[-1])
    try:
        return np.linalg.cholesky(data + precision * eye)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((data + data.swapaxes(-1, -2)) / 2)
        lifted = (vectors * (np.maximum(values, 0) + precision)[..., None, :]) @ vectors.swapaxes(-1, -2)
        return np.linalg.cholesky(lifted)


def shrunk_to_psd(blocks: np.ndarray) -> np.ndarray:
    """Correlation blocks G, those off the diagonal shrunk where rounding made G indefinite.

    Exact sums need no shrinking; a bundle keeps them in float32, which a small prior can magnify.
    (G + d I) / (1 + d), with -d the lowest eigenvalue, is the least such change that keeps the variances.
    [networks, networks, classes, D, D] -> the same
    """
    networks, _, classes, size, _ = blocks.shape
    joint = blocks.transpose(2, 0, 3, 1, 4).reshape(classes, networks * size, -1)
    try:
        np.linalg.cholesky(joint + 1e-9 * np.eye(networks * size))
        return blocks
    except np.linalg.LinAlgError:
        lowest = np.minimum(np.linalg.eigvalsh(joint).min(axis=-1), 0.0)  # [classes]
        out = blocks / (1.0 - lowest)[:, None, None]
        own = np.arange(networks)
        out[own, own] = np.eye(size)
        return out
