"""Learned weights of `ella`, which the paper leaves as future work."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import FitTracks, Value
from lla_fusion_ros.fusion.fitting.objective import minimise, scored_pairs, smoothed_nll
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

MOST_TRACKS = 200  # the variance of a fused view costs O(CMD^2); a handful of coefficients needs no more


def fit_ella(posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
    """Least NLL of the closed-form pmf over ln w_c, gamma and delta (see `Ella`)."""
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(tracks.label >= 0))[:MOST_TRACKS]
    tracks = tracks.take(chosen)
    logits, features = tracks.logits, tracks.features
    scored = scored_pairs(tracks)
    views = flat_views(posterior, logits, features)
    shape = logits.shape[:3]
    entropies = _tensor(views.network_entropy).reshape(shape)
    log_variance = _tensor(np.log(np.maximum(views.laplace_variance.mean(axis=-1), 1e-12))).reshape(shape)
    centred = _tensor(views.centred).reshape(logits.shape)
    phi = _tensor(views.bounded_features).reshape(features.shape)
    root = np.sqrt(posterior.temperature) * np.linalg.inv(np.asarray(posterior.factors, np.float64))
    whitening = _tensor(root)  # [networks, classes, D, D]
    coefficients = torch.zeros(posterior.networks + 2, dtype=torch.float64, requires_grad=True)

    def loss() -> torch.Tensor:
        network, gamma, delta = coefficients[:-2], coefficients[-2], coefficients[-1]
        log_weight = network - gamma * entropies - delta * log_variance
        weight = (
            torch.exp(log_weight - log_weight.max()) * scored.valid[..., None]
        )  # [tracks, steps, networks]

        def at_pairs(sums: torch.Tensor) -> torch.Tensor:
            return sums.cumsum(dim=1)[scored.track, scored.step]

        total = at_pairs(weight.sum(dim=2))
        mean = at_pairs((weight[..., None] * centred).sum(dim=2)) / total[:, None]
        feature = at_pairs(weight[..., None] * phi) / total[:, None, None]  # [pairs, networks, D]
        prints = torch.einsum("cmde,pce->pcmd", whitening, feature)
        spread = (prints**2).sum(
            dim=(1, 3)
        )  # networks as independent: the gradient of the cross terms is dear
        shifted = mean - mean.amax(dim=1, keepdim=True)
        penalty = 1e-3 * (coefficients**2).sum()
        return smoothed_nll(shifted / torch.sqrt(1.0 + torch.pi / 8.0 * spread), scored) + penalty

    minimise(loss, [coefficients], iterations=30)
    fitted = coefficients.detach().numpy()
    weights = np.exp(fitted[:-2] - fitted[:-2].max())
    return {
        "weights": (weights / weights.sum()).tolist(),
        "gamma": float(np.clip(fitted[-2], 0.0, 20.0)),
        "delta": float(np.clip(fitted[-1], -2.0, 2.0)),
    }


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.float64))
