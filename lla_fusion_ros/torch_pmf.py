"""The class probabilities of `pmf.py` inside the network's own call: float32, on the network's device."""

from __future__ import annotations

import math

import torch


def probit(logits: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """E[softmax(z)] in closed form, max-shifted; see `pmf.probit`.  2 x [..., classes] -> [..., classes]"""
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    return torch.softmax(shifted * torch.rsqrt(1.0 + math.pi / 8.0 * variance), dim=-1)


def monte_carlo(logits: torch.Tensor, variance: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """E[softmax(z)] over fixed standard normal points; see `pmf.monte_carlo`.

    2 x [..., classes], points [samples, classes] -> [..., classes]
    """
    clouds = variance.sqrt().unsqueeze(-2) * points
    clouds += logits.unsqueeze(-2)  # [..., samples, classes]
    return torch.softmax(clouds, dim=-1).mean(dim=-2)
