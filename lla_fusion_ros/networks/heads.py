"""What turns the output of a trunk into a view: a linear head, and the features that the posterior sees.

A trunk of 1,280 features and 1,000 classes would need a posterior of 13 GB. So wide features are seen along
their leading directions on the training data, in a basis U, and the length of what is left is one feature
more: phi' = (U^T phi, |phi - U U^T phi|, 1). Logits come from all of phi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Head:
    """The last layer of one network.

    Attributes:
        trunk: index of the trunk it stands on.
        weight, bias: g = weight phi + bias.          [classes, d], [classes]
        basis: orthonormal columns U, or None where the posterior sees every feature.     [d, r]
    """

    trunk: int
    weight: np.ndarray
    bias: np.ndarray
    basis: np.ndarray | None = None

    @property
    def features(self) -> int:
        """D, the 1 of the bias included."""
        return self.weight.shape[1] + 1 if self.basis is None else self.basis.shape[1] + 2


def views_of(heads: Sequence[Head], outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Logits and features side by side, of the trunks' outputs [crops, d].  [crops, networks, classes + D]"""
    seen: dict[int, np.ndarray] = {}  # heads of one trunk share its features
    parts = []
    for head in heads:
        phi = np.asarray(outputs[head.trunk], np.float32)
        if head.trunk not in seen:
            seen[head.trunk] = seen_features(phi, head.basis)
        parts.append(np.concatenate([phi @ head.weight.T + head.bias, seen[head.trunk]], axis=1))
    return np.stack(parts, axis=1)


def seen_features(phi: np.ndarray, basis: np.ndarray | None) -> np.ndarray:
    """phi with the 1 of the bias, along a basis where there is one.  [n, d] -> [n, D]"""
    one = np.ones((len(phi), 1), phi.dtype)
    if basis is None:
        return np.concatenate([phi, one], axis=1)
    along = phi @ basis
    rest = np.linalg.norm(phi - along @ basis.T, axis=1, keepdims=True)
    return np.concatenate([along, rest, one], axis=1)
