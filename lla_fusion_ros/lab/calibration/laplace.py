"""The Laplace fit of a trained ensemble on its training crops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from lla_fusion_ros.networks import Ensemble, Normalisation
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import fit_last_layer


def fit_posterior(
    ensemble: Ensemble,
    crops: np.ndarray,
    normalisation: Normalisation,
    prior_precision: float,
    cross: bool = False,
    batch: int = 256,
) -> EnsemblePosterior:
    """Posterior of the last layers (eq. 13) on crops [n, S, S, 3] uint8, diagonal curvature."""

    def batches() -> Iterator[torch.Tensor]:
        for start in range(0, len(crops), batch):
            yield normalisation(torch.from_numpy(np.ascontiguousarray(crops[start : start + batch])))

    posterior = fit_last_layer(ensemble, batches(), max(prior_precision, 1e-3), cross=cross)
    assert isinstance(posterior, EnsemblePosterior)
    return posterior
