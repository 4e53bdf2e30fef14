"""What every network is: a trunk that gives features, and a linear head that gives logits."""

from __future__ import annotations

import torch
from torch import nn


class SplitNetwork(nn.Module):
    """A network as the last-layer Laplace approximation needs it: g = W phi(x), phi = trunk(x).

    Any module that maps images to flat features can be the trunk, so wrapping a model of your own is
    `SplitNetwork(my_backbone, width=512, classes=43)`; see docs/train.md.
    """

    def __init__(self, trunk: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(width, classes)

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """The last hidden layer, without the 1 for the bias.  [crops, channels, S, S] -> [crops, d]"""
        return self.trunk(images)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def with_bias_feature(features: torch.Tensor) -> torch.Tensor:
    """Append the 1 that carries the bias, so that logits are one product with D = d + 1 features."""
    return torch.cat([features, features.new_ones(*features.shape[:-1], 1)], dim=-1)
