"""What calibration does to networks: a temperature each, folded into the head, and the Laplace posterior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from lla_fusion_ros.networks import Ensemble, Normalisation, SplitNetwork
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import fit_last_layer
from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.track_views import TrackViews

LOG_BOUNDS = (-3.0, 3.0)  # T between 0.05 and 20: beyond, the network is broken, not miscalibrated


def temperature_scaled(logits: np.ndarray, temperature: float) -> np.ndarray:
    """p^T of eq. 36.   [..., classes] -> [..., classes]"""
    return softmax(logits / temperature)


def fit_temperature(logits: np.ndarray, label: np.ndarray) -> float:
    """The T of one network that minimises the NLL of softmax(logits / T).   [n, classes], [n]"""
    logits = np.asarray(logits, np.float64)
    found = minimize_scalar(
        lambda log_t: nll(temperature_scaled(logits, np.exp(log_t)), label),
        bounds=LOG_BOUNDS,
        method="bounded",
    )
    return float(np.exp(found.x))


def fit_temperatures(tracks: TrackViews) -> list[float]:
    """The T of each network that minimises the NLL of all its views (eq. 36)."""
    logits, _, label = tracks.flat()
    return [fit_temperature(logits[:, network], label) for network in range(tracks.networks)]


def scale_heads(members: Sequence[SplitNetwork], temperatures: Sequence[float]) -> None:
    """Divide the last layer of each network by its temperature, in place.

    The logits then are calibrated for whoever reads them, and the Laplace fit sees calibrated pmfs.
    """
    with torch.no_grad():
        for member, temperature in zip(members, temperatures, strict=True):
            member.head.weight.div_(temperature)
            member.head.bias.div_(temperature)


def scaled(tracks: TrackViews, temperatures: Sequence[float]) -> TrackViews:
    """The same views after `scale_heads`."""
    factor = np.asarray(temperatures, np.float32)[:, None]
    return replace(tracks, logits=tracks.logits / factor)


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
