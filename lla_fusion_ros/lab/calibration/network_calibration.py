"""What calibration does to networks: a temperature each, folded into the head, and the Laplace posterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from lla_fusion_ros.bundle.bundle import network_tensors
from lla_fusion_ros.images.quality import crop_quality
from lla_fusion_ros.networks import Ensemble, Normalisation, SplitNetwork
from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import DiagonalSum, RunningSum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views

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


class Networks(Protocol):
    """What calibration asks of networks, in whatever engine they run."""

    def __len__(self) -> int: ...

    def classify(self, crops: np.ndarray) -> Views:
        """[crops, S, S, 3] uint8 -> views"""
        ...

    def scale(self, temperatures: Sequence[float]) -> None:
        """Divide the last layer of each network by its temperature, in place.

        The logits then are calibrated for whoever reads them, and the Laplace fit sees calibrated pmfs.
        """
        ...

    def tensors(self) -> dict[str, np.ndarray]:
        """As a bundle stores them."""
        ...


class TorchNetworks:
    """Networks trained here; `half` stores their weights in 16 bits."""

    def __init__(
        self, members: Sequence[SplitNetwork], normalisation: Normalisation, half: bool = False
    ) -> None:
        self._members, self._normalisation, self._half = members, normalisation, half
        self._ensemble: Ensemble | None = None

    def __len__(self) -> int:
        return len(self._members)

    def classify(self, crops: np.ndarray) -> Views:
        self._ensemble = self._ensemble or Ensemble(self._members)
        with torch.inference_mode():
            images = self._normalisation(torch.from_numpy(np.ascontiguousarray(crops)))
            logits, features = self._ensemble(images)
        return Views(logits.numpy(), features.numpy(), crop_quality(crops))

    def scale(self, temperatures: Sequence[float]) -> None:
        self._ensemble = None
        with torch.no_grad():
            for member, temperature in zip(self._members, temperatures, strict=True):
                member.head.weight.div_(temperature)
                member.head.bias.div_(temperature)

    def tensors(self) -> dict[str, np.ndarray]:
        return network_tensors(self._members, self._half)


def scaled(tracks: TrackViews, temperatures: Sequence[float]) -> TrackViews:
    """The same views after `Networks.scale`."""
    factor = np.asarray(temperatures, np.float32)[:, None]
    return replace(tracks, logits=tracks.logits / factor)


def fit_posterior(
    classify: Callable[[np.ndarray], Views],
    crops: np.ndarray,
    prior_precision: float,
    cross: bool = False,
    batch: int = 256,
) -> EnsemblePosterior:
    """Posterior of the last layers (eq. 13) on crops [n, S, S, 3] uint8, diagonal curvature."""
    total: RunningSum | None = None
    for start in range(0, len(crops), batch):
        views = classify(crops[start : start + batch])
        if not (np.isfinite(views.logits).all() and np.isfinite(views.features).all()):
            raise InputError("the networks return NaN or infinity on the training data")
        kind: type[RunningSum] = CrossSum if cross else DiagonalSum
        networks, classes = views.logits.shape[1:]
        total = total or kind(networks, classes, views.features.shape[2])
        total.add(views.logits.astype(np.float64), views.features.astype(np.float64))
    assert total is not None
    posterior: EnsemblePosterior = total.finish(max(prior_precision, 1e-3))
    return posterior
