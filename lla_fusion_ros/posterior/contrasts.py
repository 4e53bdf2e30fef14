"""What the coupled curvatures share: they answer in contrasts, a logit minus the mean of all logits.

diag p - p p^T has the all-ones vector in its null space: the data say nothing about a constant added to all
logits, so raw variances carry the prior's huge common mode, which softmax ignores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lla_fusion_ros.types.errors import InputError

Own = TypeVar("Own", bound="ContrastPosterior")


def contrasts(covariance: np.ndarray) -> np.ndarray:
    """Covariance of z - mean(z) given that of z: both sides centred.  [..., classes, classes]"""
    rows = covariance - covariance.mean(axis=-1, keepdims=True)
    return rows - rows.mean(axis=-2, keepdims=True)


class ContrastPosterior:
    """A posterior of last layers whose classes are coupled; a frozen dataclass derives from it.

    It has the properties `networks`, `classes` and `features`, a field `temperature` (T_theta), and
    `raw_covariance(first, second)`, the covariance of the logits at T_theta = 1.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        temperature: float

        @property
        def networks(self) -> int: ...
        @property
        def features(self) -> int: ...
        def raw_covariance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray: ...

    def logit_covariance(self, first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
        """T_theta J_i H^-1 J_j^T of eq. 17c, as contrasts; one network with itself.

        1 or 2 x [..., networks, D] -> [..., networks, classes, classes]
        """
        if first.shape[-2:] != (self.networks, self.features):
            raise InputError(
                f"features have shape {first.shape}, expected [..., {self.networks}, {self.features}]"
            )
        return self.temperature * contrasts(self.raw_covariance(first, first if second is None else second))

    def variance(self, features: np.ndarray) -> np.ndarray:
        """Variance of each logit's contrast to the mean.  [..., networks, D] -> [..., networks, classes]"""
        return np.diagonal(self.logit_covariance(features), axis1=-2, axis2=-1)

    def with_temperature(self: Own, temperature: float) -> Own:
        """The same posterior with another T_theta."""
        dataclass: Any = self
        return replace(dataclass, temperature=float(temperature))
