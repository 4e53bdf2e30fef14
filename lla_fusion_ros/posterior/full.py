"""`full` curvature: the whole generalised Gauss-Newton matrix of the last layer, classes coupled.

    H = sum_n Lambda_n (x) phi_n phi_n^T + P0^-1,    Lambda_n = diag(p_n) - p_n p_n^T

Everything it answers is a contrast, for the reason given in contrasts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from lla_fusion_ros.posterior.contrasts import ContrastPosterior
from lla_fusion_ros.posterior.ensemble import factor_with_prior
from lla_fusion_ros.posterior.outer_sum import outer_sum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax

LARGEST = 12_000  # parameters of one last layer: 1.2 GB per matrix of float64


class FullSum:
    """Running sum of Lambda_n (x) phi_n phi_n^T.

    State: [networks, M * M, D, D]
    """

    def __init__(self, networks: int, classes: int, features: int) -> None:
        if classes * features > LARGEST:
            raise InputError(
                f"full curvature of {classes} classes x {features} features has "
                f"{classes * features} parameters, more than {LARGEST}; use curvature 'kron' or 'diagonal'"
            )
        self.classes = classes
        self.sums = np.zeros((networks, classes**2, features, features))

    def add(self, logits: np.ndarray, features: np.ndarray) -> None:
        """One batch: logits [n, networks, classes], features [n, networks, D]."""
        pmf = softmax(logits)
        curvature = pmf[..., :, None] * (np.eye(self.classes) - pmf[..., None, :])  # Lambda
        for network, total in enumerate(self.sums):
            phi = features[:, network]
            total += outer_sum(curvature[:, network].reshape(len(phi), -1), phi, phi)

    def finish(self, prior_precision: float) -> FullPosterior:
        networks, _, size, _ = self.sums.shape
        side = self.classes * size
        blocks = self.sums.reshape(networks, self.classes, self.classes, size, size)
        data = blocks.transpose(0, 1, 3, 2, 4).reshape(-1, side, side)  # parameter (m, d) at m * D + d
        factors = factor_with_prior(data, prior_precision)
        return FullPosterior(factors, self.classes, float(prior_precision))


@dataclass(frozen=True)  # no slots: cached_property keeps the inverse in the instance
class FullPosterior(ContrastPosterior):
    """Gaussian posterior of the last layers with all classes coupled; answers in contrasts.

    Attributes:
        factors: lower Cholesky of H, parameter (m, d) at m * D + d.   [networks, M * D, M * D]
        classes: M.
        prior_precision: P0^-1 = prior_precision * I.
        temperature: T_theta.
    """

    factors: np.ndarray
    classes: int
    prior_precision: float
    temperature: float = 1.0

    @property
    def networks(self) -> int:
        return len(self.factors)

    @property
    def features(self) -> int:
        return self.factors.shape[1] // self.classes

    @cached_property
    def _covariances(self) -> np.ndarray:
        """H^-1, ready to be met by two feature vectors.  [networks, M * M, D * D]"""
        eye = np.eye(self.factors.shape[1])
        inverse = np.stack([cho_solve((factor, True), eye) for factor in self.factors])
        inverse = inverse.reshape(-1, self.classes, self.features, self.classes, self.features)
        return inverse.transpose(0, 1, 3, 2, 4).reshape(self.networks, self.classes**2, self.features**2)

    def raw_covariance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """J_i H^-1 J_j^T, common mode included.   2 x [..., networks, D] -> [..., networks, M, M]"""
        products = (first[..., :, None] * second[..., None, :]).reshape(-1, self.networks, self.features**2)
        flat = np.matmul(products.transpose(1, 0, 2), self._covariances.swapaxes(-1, -2))
        return flat.transpose(1, 0, 2).reshape(*first.shape[:-1], self.classes, self.classes)

    def with_prior(self, precision: float) -> FullPosterior:
        """The same data under another prior."""
        eye = np.eye(self.factors.shape[1])
        data = self.factors @ self.factors.swapaxes(-1, -2) - self.prior_precision * eye
        return replace(self, factors=factor_with_prior(data, precision), prior_precision=float(precision))

    def select(self, networks: Sequence[int]) -> FullPosterior:
        """The posterior of some of the networks."""
        return replace(self, factors=self.factors[list(networks)])
