"""The coefficients of `reliability`, fitted by gradient on validation tracks."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import Value
from lla_fusion_ros.fusion.fitting.objective import minimise, nll, scored_pairs
from lla_fusion_ros.fusion.quality import quality
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

RIDGE = 1e-3  # on standardised coefficients: signs that say the same share the weight, none explodes


def fit_reliability(
    posterior: EnsemblePosterior,
    logits: np.ndarray,
    features: np.ndarray,
    steps: np.ndarray,
    label: np.ndarray,
    variance: np.ndarray | None = None,
) -> dict[str, Value]:
    """Least NLL over theta, a and b (see `Reliability`), with the standardisation of the signs.

    logits, features, variance [tracks, steps, networks, ...], steps (views of each track) and label [tracks]
    """
    tracks, longest = logits.shape[:2]
    scored = scored_pairs(steps, label, longest)
    views = flat_views(posterior, logits, features, variance)
    signs = quality(views)
    exists = scored.valid.numpy().ravel()
    center, scale = signs[exists].mean(axis=0), np.maximum(signs[exists].std(axis=0), 1e-6)
    standard = torch.from_numpy(np.clip((signs - center) / scale, -8.0, 8.0).reshape(tracks, longest, -1))
    centred = torch.from_numpy(views.mean_centred.reshape(tracks, longest, -1))
    theta = torch.zeros(signs.shape[1], dtype=torch.float64, requires_grad=True)
    power = torch.tensor([0.3, 0.0], dtype=torch.float64, requires_grad=True)  # a, b

    def loss() -> torch.Tensor:
        weight = torch.exp((standard @ theta).clamp(-20.0, 20.0)) * scored.valid  # [tracks, steps]
        total = weight.cumsum(dim=1)[scored.track, scored.step]
        evidence = (weight[..., None] * centred).cumsum(dim=1)[scored.track, scored.step]
        growth = total ** power[0].clamp(0.0, 1.0) * torch.exp(-power[1])
        return nll(evidence / total[:, None] * growth[:, None], scored.label) + RIDGE * (theta**2).sum()

    minimise(loss, [theta, power])
    a, b = power.detach().numpy()
    return {
        "theta": theta.detach().tolist(),
        "center": center.tolist(),
        "scale": scale.tolist(),
        "a": float(np.clip(a, 0.0, 1.0)),
        "b": float(np.clip(b, -4.0, 4.0)),
    }
