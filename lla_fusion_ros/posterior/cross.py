"""Covariance between different networks trained on the same data: what the paper calls unclear, computed.

The estimates of two last layers move together because the same noisy labels moved both. To first order

    Cov(theta_i, theta_j) = A_i^-1 B_ij A_j^-1,    B_ij = sum_n eta_mn phi_in phi_jn^T

per class m (the block R_{i,j} of eq. 22 is phi_i^T Cov phi_j). With the *same* eta
in A_i, A_j and B_ij the joint data matrix is sum_n eta_mn Phi_n Phi_n^T with Phi_n = (phi_1n, ..., phi_Cn),
a sum of outer products: positive semidefinite by construction. So eta comes from the ensemble's mean pmf.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior, factor_with_prior
from lla_fusion_ros.posterior.outer_sum import outer_sum
from lla_fusion_ros.types.pmf import softmax


class CrossSum:
    """Running sums of A_i and B_ij with the eta of the ensemble's mean pmf.

    State: the data term of A_i at i, i and B_ij at i, j.   [networks, networks, classes, D, D]
    """

    def __init__(self, networks: int, classes: int, features: int) -> None:
        self.sums = np.zeros((networks, networks, classes, features, features))

    def add(self, logits: np.ndarray, features: np.ndarray) -> None:
        """One batch: logits [n, networks, classes], features [n, networks, D]."""
        pmf = softmax(logits).mean(axis=1)  # of the ensemble, [n, classes]
        eta = pmf * (1.0 - pmf)
        for i in range(len(self.sums)):
            for j in range(i + 1):
                self.sums[i, j] += outer_sum(eta, features[:, i], features[:, j])

    def finish(self, prior_precision: float) -> EnsemblePosterior:
        cross = self.sums.copy()
        for i in range(len(cross)):
            for j in range(i):
                cross[j, i] = cross[i, j].swapaxes(-1, -2)
        own = np.arange(len(cross))
        factors = factor_with_prior(cross[own, own], prior_precision)
        return EnsemblePosterior(factors, float(prior_precision), cross=cross)
