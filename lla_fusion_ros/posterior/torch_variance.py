"""The variance of the logits inside the network's own call: float32, on the network's device, one copy back.

Measured on one busy CPU core, 5 networks, ms per call of 1 / 16 / 64 crops, for classes x width
(`python tools/compare_variance_forms.py` measures again; read the ratios):

| form                                     | 10 x 84           | 43 x 84           | 43 x 256         |
|------------------------------------------|-------------------|-------------------|------------------|
| packed: vech(phi phi^T) times weights    | .11 / .94 / 7.8   | .18 / 1.1 / 4.8   | 1.8 / 22 / 158   |
| whitened: the square of L^-1 phi         | .03 / .11 / .41   | .25 / .56 / 1.9   | 2.7 / 13 / 39    |
| whitened, triangle cut into 4 row blocks | .06 / .14 / .42   | .21 / .49 / 1.7   | 1.5 / 4.0 / 23   |
| whitened, float64 in numpy               | .10 / .35 / .94   | .48 / 1.5 / 4.2   | 10 / 16 / 79     |

So: whitened, in row blocks where the features are many. It is also the safe one in float32: a sum of squares
cannot cancel, whereas the packed form subtracts large numbers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

BLOCKS_FROM = 128  # features; below, cutting the triangle costs more calls than it saves


class TorchVariance(nn.Module):
    """T_theta phi^T A_m^-1 phi of every crop, network and class (the diagonal of eq. linearizeCov)."""

    def __init__(self, posterior: EnsemblePosterior) -> None:
        super().__init__()
        self.classes = posterior.classes
        size = posterior.features
        inverse = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, M, D, D], lower
        edges = np.linspace(0, size, (4 if size >= BLOCKS_FROM else 1) + 1).astype(int)
        self.ends: list[int] = []
        for block, (start, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            rows = inverse[:, :, start:end, :end]  # columns after `end` are zero in a lower triangle
            flat = rows.reshape(posterior.networks, -1, end).swapaxes(1, 2)  # [networks, end, M * rows]
            self.register_buffer(f"rows{block}", torch.tensor(flat, dtype=torch.float32).contiguous())
            self.ends.append(int(end))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[crops, networks, D] -> [crops, networks, classes]"""
        phi = features.float().transpose(0, 1)  # [networks, crops, D]
        total: torch.Tensor | None = None
        for block, end in enumerate(self.ends):
            prints = torch.bmm(phi[..., :end], self.get_buffer(f"rows{block}"))
            squares = prints.unflatten(-1, (self.classes, -1)).square().sum(dim=-1)
            total = squares if total is None else total + squares
        assert total is not None
        return total.transpose(0, 1)
