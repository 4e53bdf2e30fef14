"""`kron` curvature: the full matrix of full.py replaced by one Kronecker product, so it fits any last layer.

    H ~ (1/N) (sum_n Lambda_n) (x) (sum_n phi_n phi_n^T) + P0^-1

Kept as eigenvalues and eigenvectors of the two factors, because then the prior is added exactly. The answers
are contrasts, for the reason given in contrasts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lla_fusion_ros.posterior.contrasts import ContrastPosterior
from lla_fusion_ros.types.pmf import softmax


class KronSum:
    """Running sums of phi phi^T and of Lambda.   [networks, D, D] and [networks, M, M]"""

    def __init__(self, networks: int, classes: int, features: int) -> None:
        self.inputs = np.zeros((networks, features, features))
        self.outputs = np.zeros((networks, classes, classes))
        self.images = 0

    def add(self, logits: np.ndarray, features: np.ndarray) -> None:
        """One batch: logits [n, networks, classes], features [n, networks, D]."""
        pmf, phi = softmax(logits).swapaxes(0, 1), features.swapaxes(0, 1)  # [networks, n, ...]
        self.inputs += phi.swapaxes(-1, -2) @ phi
        self.outputs -= pmf.swapaxes(-1, -2) @ pmf
        diagonal = np.arange(self.outputs.shape[-1])
        self.outputs[:, diagonal, diagonal] += pmf.sum(axis=1)
        self.images += len(logits)

    def finish(self, prior_precision: float) -> KronPosterior:
        input_values, input_vectors = np.linalg.eigh(self.inputs)
        output_values, output_vectors = np.linalg.eigh(self.outputs / max(self.images, 1))
        return KronPosterior(
            np.maximum(input_values, 0.0),
            input_vectors,
            np.maximum(output_values, 0.0),
            output_vectors,
            float(prior_precision),
        )


@dataclass(frozen=True, slots=True)
class KronPosterior(ContrastPosterior):
    """Kronecker-factored posterior of the last layers; answers in contrasts.

    Attributes:
        input_values, input_vectors: of sum phi phi^T.        [networks, D], [networks, D, D]
        output_values, output_vectors: of mean Lambda.        [networks, M], [networks, M, M]
        prior_precision: P0^-1 = prior_precision * I.
        temperature: T_theta.
    """

    input_values: np.ndarray
    input_vectors: np.ndarray
    output_values: np.ndarray
    output_vectors: np.ndarray
    prior_precision: float
    temperature: float = 1.0

    @property
    def networks(self) -> int:
        return len(self.input_values)

    @property
    def classes(self) -> int:
        return self.output_values.shape[1]

    @property
    def features(self) -> int:
        return self.input_values.shape[1]

    def raw_covariance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """J_i H^-1 J_j^T, common mode included.   2 x [..., networks, D] -> [..., networks, M, M]"""
        rotated = np.einsum("...cd,cde->...ce", first, self.input_vectors)
        rotated = rotated * np.einsum("...cd,cde->...ce", second, self.input_vectors)  # [..., networks, D]
        precision = self.input_values[:, :, None] * self.output_values[:, None, :] + self.prior_precision
        scales = np.einsum("...cd,cdm->...cm", rotated, 1.0 / precision)
        return (self.output_vectors * scales[..., None, :]) @ self.output_vectors.swapaxes(-1, -2)

    def with_prior(self, precision: float) -> KronPosterior:
        """The same data under another prior."""
        return replace(self, prior_precision=float(precision))

    def select(self, networks: Sequence[int]) -> KronPosterior:
        """The posterior of some of the networks."""
        chosen = list(networks)
        return replace(
            self,
            input_values=self.input_values[chosen],
            input_vectors=self.input_vectors[chosen],
            output_values=self.output_values[chosen],
            output_vectors=self.output_vectors[chosen],
        )
