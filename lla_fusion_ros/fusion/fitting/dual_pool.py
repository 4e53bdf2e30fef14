"""The coefficients of `dual_pool`: both pools and the lapse, fitted together by gradient."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import FitTracks, Value
from lla_fusion_ros.fusion.dual_pool import LARGEST_TRUST, MOST_RARITY
from lla_fusion_ros.fusion.fitting.objective import minimise, scored_pairs, smoothed_nll, standardised
from lla_fusion_ros.fusion.fitting.reliability import RIDGE
from lla_fusion_ros.fusion.fitting.reliable_pool import LOG_TEMPERATURE, LOG_VIEW_TEMPERATURE, SIGN_PRIOR
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.quality import QUALITY, quality
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

MOST_LAPSE = 0.5
# The two pools can trade their corrections for rarity against each other; this keeps both near nothing.
RARITY_RIDGE = 3e-4


def least_lapse(objects: int) -> float:
    """The share of misread objects that so many well-read ones leave probable: half an object (Jeffreys)."""
    return 0.5 / (objects + 1)


def fit_dual_pool(posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
    """Least NLL over both thetas, trust, growths, temperatures, rarities, lapse and spread (see `DualPool`).

    The ridge spares the entropy of the linear pool: what it shrinks towards is `pool` times a mean of logits.
    """
    scored = scored_pairs(tracks)
    views = flat_views(posterior, tracks.logits, tracks.features)
    standard, center, scale = standardised(quality(views, prior=SIGN_PRIOR), scored)
    shifted = torch.from_numpy(views.shifted.reshape(tracks.logits.shape))
    centred = torch.from_numpy(views.mean_centred.reshape(*tracks.logits.shape[:2], -1))
    entropy = list(QUALITY).index("entropy")
    theta = torch.zeros(len(QUALITY), 3, dtype=torch.float64)  # linear, log-linear, trust
    theta[entropy, 0] = -1.0
    theta.requires_grad_()
    spared = torch.ones_like(theta)
    spared[entropy, 0] = 0.0
    start = [0.1, 0.7, 0.0, 0.3, 0.7]  # alpha, ln T, ln T_view, a, b
    powers = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    rarities = torch.zeros(2, dtype=torch.float64, requires_grad=True)  # linear, log-linear
    rare = torch.from_numpy(posterior.rarity)  # [classes]
    tail = torch.tensor([-5.0, -1.0], dtype=torch.float64, requires_grad=True)  # logits of lapse and spread
    least = least_lapse(tracks.objects)
    count = (scored.step + 1).double()

    def along(values: torch.Tensor) -> torch.Tensor:
        return values.cumsum(dim=1)[scored.track, scored.step]

    def lapse_and_spread() -> tuple[torch.Tensor, torch.Tensor]:
        lapse, spread = torch.sigmoid(tail)
        return least + (MOST_LAPSE - least) * lapse, spread

    def loss() -> torch.Tensor:
        learned = standard @ theta  # [tracks, steps, 3]
        weights = torch.exp(learned[..., :2].clamp(-20.0, 20.0)) * scored.valid[..., None]
        linear, log = weights.unbind(dim=-1)  # [tracks, steps]
        trust = learned[..., 2].clamp(-LARGEST_TRUST, LARGEST_TRUST)
        linear_benefit, log_benefit = rarities.clamp(-MOST_RARITY, MOST_RARITY)[:, None] * rare
        scaled = shifted / torch.exp(powers[2].clamp(*LOG_VIEW_TEMPERATURE)) + linear_benefit
        pmf = torch.softmax(scaled, dim=-1).mean(dim=2)
        mass, total = along(linear), along(log)
        pooled = torch.log((along(linear[..., None] * pmf) / mass[:, None]).clamp_min(FLOOR))
        growth = count ** powers[0].clamp(0.0, 1.0) * torch.exp(-powers[1].clamp(*LOG_TEMPERATURE))
        growth = growth * torch.exp(along(linear * trust) / mass)
        log_growth = total ** (powers[3].clamp(0.0, 1.0) - 1.0) * torch.exp(-powers[4].clamp(-4.0, 4.0))
        summed = along(log[..., None] * (centred + log_benefit))
        scores = pooled * growth[:, None] + summed * log_growth[:, None]
        lapse, spread = lapse_and_spread()
        log_pmf = torch.logaddexp(
            torch.log1p(-lapse) + scores.log_softmax(dim=-1),
            torch.log(lapse) + (spread * scores).log_softmax(dim=-1),
        )
        penalty = RIDGE * (spared * theta**2).sum() + RARITY_RIDGE * (rarities**2).sum()
        return smoothed_nll(log_pmf, scored) + penalty

    minimise(loss, [theta, powers, rarities, tail], iterations=60)
    linear_rarity, log_rarity = np.clip(rarities.detach().numpy(), -MOST_RARITY, MOST_RARITY).tolist()
    alpha, log_t, log_view, a, b = powers.detach().numpy()
    lapse, spread = (float(value.detach()) for value in lapse_and_spread())
    return {
        "linear_theta": theta[:, 0].tolist(),
        "log_theta": theta[:, 1].tolist(),
        "trust": theta[:, 2].tolist(),
        "center": center.tolist(),
        "scale": scale.tolist(),
        "prior": SIGN_PRIOR,
        "alpha": float(np.clip(alpha, 0.0, 1.0)),
        "temperature": float(np.exp(np.clip(log_t, *LOG_TEMPERATURE))),
        "view_temperature": float(np.exp(np.clip(log_view, *LOG_VIEW_TEMPERATURE))),
        "a": float(np.clip(a, 0.0, 1.0)),
        "b": float(np.clip(b, -4.0, 4.0)),
        "lapse": lapse,
        "spread": spread,
        "linear_rarity": linear_rarity,
        "log_rarity": log_rarity,
    }
