"""The coefficients of `reliability`, fitted by gradient on validation tracks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import FitTracks, Value
from lla_fusion_ros.fusion.fitting.objective import minimise, scored_pairs, smoothed_nll, standardised
from lla_fusion_ros.fusion.quality import QUALITY, quality
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

RIDGE = 1e-3  # on standardised coefficients: signs that say the same share the weight, none explodes


def fit_reliability(
    posterior: EnsemblePosterior,
    tracks: FitTracks,
    signs: Sequence[str] = tuple(QUALITY),
    prior: float | None = None,
) -> dict[str, Value]:
    """Least NLL over theta, a and b (see `Reliability`), with the standardisation of the signs.

    `signs` are those with a coefficient, the others get none; `prior` is that of the variance among them.
    """
    scored = scored_pairs(tracks)
    views = flat_views(posterior, tracks.logits, tracks.features)
    standard, center, scale = standardised(quality(views, prior=prior), scored)
    used = torch.tensor([float(name in signs) for name in QUALITY], dtype=torch.float64)
    centred = torch.from_numpy(views.mean_centred.reshape(*tracks.logits.shape[:2], -1))
    theta = torch.zeros(len(center), dtype=torch.float64, requires_grad=True)
    power = torch.tensor([0.3, 0.0], dtype=torch.float64, requires_grad=True)  # a, b

    def loss() -> torch.Tensor:
        weight = torch.exp((standard @ (used * theta)).clamp(-20.0, 20.0)) * scored.valid  # [tracks, steps]
        total = weight.cumsum(dim=1)[scored.track, scored.step]
        evidence = (weight[..., None] * centred).cumsum(dim=1)[scored.track, scored.step]
        growth = total ** power[0].clamp(0.0, 1.0) * torch.exp(-power[1])
        scores = evidence / total[:, None] * growth[:, None]
        return smoothed_nll(scores, scored) + RIDGE * (theta**2).sum()

    minimise(loss, [theta, power])
    a, b = power.detach().numpy()
    return {
        "theta": (used * theta).detach().tolist(),
        "center": center.tolist(),
        "scale": scale.tolist(),
        "a": float(np.clip(a, 0.0, 1.0)),
        "b": float(np.clip(b, -4.0, 4.0)),
    }
