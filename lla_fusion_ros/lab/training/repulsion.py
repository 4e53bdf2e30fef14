"""Repulsive training: a kernel on the members' predictions pushes them apart."""

from __future__ import annotations

import torch


def repulsion_loss(logits: torch.Tensor) -> torch.Tensor:
    """Mean kernel value over pairs of members; high where they predict the same.

    k(c, e) = exp(-|p_c - p_e|^2 / h) on every crop, h the median squared distance of that batch (detached),
    so that the pull does not depend on the scale.   [members, crops, classes] -> scalar
    """
    pmf = logits.softmax(dim=-1)
    distance = (pmf[:, None] - pmf[None]).square().sum(dim=-1)  # [members, members, crops]
    first, second = torch.triu_indices(len(logits), len(logits), offset=1)
    pairs = distance[first, second]  # [pairs, crops]
    width = pairs.detach().median().clamp_min(1e-3)
    return torch.exp(-pairs / width).mean()
