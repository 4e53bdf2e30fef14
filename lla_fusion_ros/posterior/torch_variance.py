"""The variance of the logits inside the network's own call: float32, on the network's device, one copy back.

Whitened, the square of L^-1 phi, and not vech(phi phi^T) times weights: a sum of squares cannot cancel in
float32, and needs no gather. Two things make it fast (`python tools/compare_variance_forms.py` measures it):
L^-1 is a triangle, so cutting it into row blocks saves up to half of the products, and with the classes
innermost the sum of squares runs along contiguous memory.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

# (least number of features, row blocks): more blocks save products but cost calls.
BLOCKS = ((128, 16), (32, 4), (0, 1))


class TorchVariance(nn.Module):
    """T_theta phi^T A_m^-1 phi of every crop, network and class (the diagonal of eq. linearizeCov)."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        super().__init__()
        self.classes = posterior.classes
        size = posterior.features
        inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, M, D, D], lower
        count = next(blocks for least, blocks in BLOCKS if size >= least)
        edges = np.linspace(0, size, count + 1).astype(int)
        self.ends: list[int] = []
        for block, (start, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            rows = inverse[:, :, start:end, :end]  # columns after `end` are zero in a lower triangle
            flat = rows.transpose(0, 3, 2, 1).reshape(
                posterior.networks, end, -1
            )  # [networks, end, rows * M]
            self.register_buffer(f"rows{block}", torch.tensor(flat, dtype=torch.float32).contiguous())
            self.ends.append(int(end))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[crops, networks, D] -> [crops, networks, classes]"""
        phi = features.float().transpose(0, 1)  # [networks, crops, D]
        total: torch.Tensor | None = None
        for block, end in enumerate(self.ends):
            prints = torch.bmm(phi[..., :end], self.get_buffer(f"rows{block}"))
            squares = prints.unflatten(-1, (-1, self.classes)).square_().sum(dim=-2)
            total = squares if total is None else total.add_(squares)
        assert total is not None
        return total.transpose(0, 1)
