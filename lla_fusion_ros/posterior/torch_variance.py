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
        first, *others = self._rows()
        squares = torch.bmm(phi[..., : first.shape[1]], first).square_()  # [networks, crops, rows * classes]
        for rows in others:
            prints = torch.bmm(phi[..., : rows.shape[1]], rows)
            # Onto the first, widest block, in one pass: to square, sum and add each takes a tenth longer.
            squares[..., : rows.shape[2]].addcmul_(prints, prints)
        return squares.unflatten(-1, (-1, self.classes)).sum(dim=-2).transpose(0, 1)

    def _rows(self) -> list[torch.Tensor]:
        return [self.get_buffer(f"rows{index}") for index in range(self.blocks)]
