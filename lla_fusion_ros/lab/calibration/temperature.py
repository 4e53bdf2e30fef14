"""Temperature scaling of every network on validation views, folded into its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from lla_fusion_ros.lab.calibration.temperature_scaling import fit_temperature
from lla_fusion_ros.networks import SplitNetwork
from lla_fusion_ros.types.track_views import TrackViews


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
