"""Covariance between different networks trained on the same data: what the paper calls unclear, computed.

The estimates of two last layers move together because the same noisy labels moved both. To first order

    Cov(theta_i, theta_j) = A_i^-1 B_ij A_j^-1,    B_ij = sum_n eta_mn phi_in phi_jn^T

per class m (the block R_{i,j} of eq. full_description_seq_multi is phi_i^T Cov phi_j). With the *same* eta
in A_i, A_j and B_ij the joint data matrix is sum_n eta_mn Phi_n Phi_n^T with Phi_n = (phi_1n, ..., phi_Cn),
a sum of outer products: positive semidefinite by construction. So eta comes from the ensemble's mean pmf.
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.pmf import softmax
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior, factor_with_prior
from lla_fusion_ros.posterior.symmetric import CHUNK_NUMBERS, outer_sum, unpack


class CrossSum:
    """Running sums of A_i and B_ij with the eta of the ensemble's mean pmf.

    State: [networks, classes, D (D + 1) / 2] and, for each pair of networks, [classes, D, D].
    """

    def __init__(self, networks: int, classes: int, features: int) -> None:
        self.size = features
        self.own = np.zeros((networks, classes, features * (features + 1) // 2))
        self.cross = np.zeros((networks, networks, classes, features, features))

    def add(self, logits: np.ndarray, features: np.ndarray) -> None:
        """One batch: logits [n, networks, classes], features [n, networks, D]."""
        pmf = softmax(logits).mean(axis=1)  # of the ensemble, [n, classes]
        eta = pmf * (1.0 - pmf)
        for network, total in enumerate(self.own):
            total += outer_sum(eta, features[:, network])
        step = max(1, CHUNK_NUMBERS // self.size**2)
        for start in range(0, len(features), step):
            chunk = slice(start, start + step)
            self._add_pairs(eta[chunk], features[chunk])

    def _add_pairs(self, eta: np.ndarray, features: np.ndarray) -> None:
        for i in range(len(self.own)):
            for j in range(i):
                products = features[:, i, :, None] * features[:, j, None, :]  # [n, D, D]
                self.cross[i, j] += (eta.T @ products.reshape(len(eta), -1)).reshape(self.cross.shape[2:])

    def finish(self, prior_precision: float) -> EnsemblePosterior:
        cross = self.cross.copy()
        for i in range(len(cross)):
            for j in range(i):
                cross[j, i] = cross[i, j].swapaxes(-1, -2)
        factors = factor_with_prior(unpack(self.own, self.size), prior_precision)
        return EnsemblePosterior(factors, float(prior_precision), cross=cross)
