"""The variance of the logits inside the network's own call: on the network's device, one copy back."""

from __future__ import annotations

import torch
from torch import nn

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.single_variance import row_blocks


class TorchVariance(nn.Module):
    """What `SingleVariance` computes, as a module: T_theta phi^T A_m^-1 phi of every crop, network, class."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        super().__init__()
        self.classes = posterior.classes
        self.blocks = 0
        for block in row_blocks(posterior):
            self.register_buffer(f"rows{self.blocks}", torch.from_numpy(block))
            self.blocks += 1

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[crops, networks, D] -> [crops, networks, classes]"""
        phi = features.float().transpose(0, 1)  # [networks, crops, D]
        total: torch.Tensor | None = None
        for index in range(self.blocks):
            rows = self.get_buffer(f"rows{index}")
            prints = torch.bmm(phi[..., : rows.shape[1]], rows)
            squares = prints.unflatten(-1, (-1, self.classes)).square_().sum(dim=-2)
            total = squares if total is None else total.add_(squares)
        assert total is not None
        return total.transpose(0, 1)
