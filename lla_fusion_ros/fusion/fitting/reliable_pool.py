"""The coefficients of `reliable_pool`, fitted by gradient on validation tracks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import FitTracks, Value
from lla_fusion_ros.fusion.fitting.objective import minimise, scored_pairs, smoothed_nll, standardised
from lla_fusion_ros.fusion.fitting.reliability import RIDGE
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.quality import QUALITY, quality
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

# Small against the data term: the variance then is the distance from the training views of the class, which
# makes it a far better sign than under the prior that calibrates single views (docs/evidence.md).
SIGN_PRIOR = 1.0
LOG_TEMPERATURE = (-3.9, 2.9)  # within the bounds of the fuser's scalars
LOG_VIEW_TEMPERATURE = (-2.3, 2.9)


def fit_reliable_pool(
    posterior: EnsemblePosterior,
    tracks: FitTracks,
    signs: Sequence[str] = tuple(QUALITY),
    prior: float = SIGN_PRIOR,
) -> dict[str, Value]:
    """Least NLL over theta, alpha, T and the views' temperature (see `ReliablePool`).

    The ridge spares the coefficient of entropy: what it shrinks towards is `pool`, not equal weights.
    `signs` are those with a coefficient, the others get none; `prior` is that of the variance among them.
    """
    scored = scored_pairs(tracks)
    views = flat_views(posterior, tracks.logits, tracks.features)
    standard, center, scale = standardised(quality(views, prior=prior), scored)
    used = torch.tensor([float(name in signs) for name in QUALITY], dtype=torch.float64)
    shifted = torch.from_numpy(views.shifted.reshape(tracks.logits.shape))
    entropy = list(QUALITY).index("entropy")
    theta = torch.zeros(len(used), dtype=torch.float64)
    theta[entropy] = -1.0
    theta.requires_grad_()
    spared = torch.ones_like(theta)
    spared[entropy] = 0.0
    growth = torch.tensor([0.1, 0.0, 0.0], dtype=torch.float64, requires_grad=True)  # alpha, ln T, ln T_view
    count = (scored.step + 1).double()

    def loss() -> torch.Tensor:
        weight = torch.exp((standard @ (used * theta)).clamp(-20.0, 20.0)) * scored.valid  # [tracks, steps]
        pmf = torch.softmax(shifted / torch.exp(growth[2].clamp(*LOG_VIEW_TEMPERATURE)), dim=-1).mean(dim=2)
        total = weight.cumsum(dim=1)[scored.track, scored.step]
        mass = (weight[..., None] * pmf).cumsum(dim=1)[scored.track, scored.step]
        scores = torch.log((mass / total[:, None]).clamp_min(FLOOR))
        power = count ** growth[0].clamp(0.0, 1.0) * torch.exp(-growth[1].clamp(*LOG_TEMPERATURE))
        return smoothed_nll(scores * power[:, None], scored) + RIDGE * (spared * theta**2).sum()

    minimise(loss, [theta, growth], iterations=60)
    alpha, log_t, log_view = growth.detach().numpy()
    return {
        "theta": (used * theta).detach().tolist(),
        "center": center.tolist(),
        "scale": scale.tolist(),
        "prior": prior,
        "alpha": float(np.clip(alpha, 0.0, 1.0)),
        "temperature": float(np.exp(np.clip(log_t, *LOG_TEMPERATURE))),
        "view_temperature": float(np.exp(np.clip(log_view, *LOG_VIEW_TEMPERATURE))),
    }
