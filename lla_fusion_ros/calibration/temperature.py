"""Temperature scaling of every network on validation views, folded into its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from lla_fusion_ros.calibration.trackviews import TrackViews
from lla_fusion_ros.networks import SplitNetwork
from lla_fusion_ros.pmf import softmax


def flat_views(tracks: TrackViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All real views without their tracks: logits [n, C, M], features [n, C, D], label [n]."""
    real = np.arange(tracks.logits.shape[1]) < tracks.steps[:, None]
    label = np.repeat(tracks.label, tracks.steps)
    return tracks.logits[real], tracks.features[real], label


def mean_nll(pmf: np.ndarray, label: np.ndarray) -> float:
    """Mean negative log-likelihood; a probability of zero counts as 1e-12."""
    return float(-np.log(np.maximum(pmf[np.arange(len(label)), label], 1e-12)).mean())


def fit_temperatures(tracks: TrackViews) -> list[float]:
    """The T of each network that minimises the validation NLL of softmax(logits / T) (eq. temp_scaling_fm)."""
    logits, _, label = flat_views(tracks)
    logits = logits.astype(np.float64)
    best = []
    for network in range(tracks.networks):
        own = logits[:, network]

        def loss(log_t: float, own: np.ndarray = own) -> float:
            return mean_nll(softmax(own / np.exp(log_t)), label)

        best.append(float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)))
    return best


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
