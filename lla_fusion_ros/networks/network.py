"""What every network is: a trunk that gives features, and a linear head that gives logits."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


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


def folded(network: SplitNetwork) -> SplitNetwork:
    """A copy for inference, batch norm folded into the layer before it, without dropout: fewer operations.

    Only a flat `nn.Sequential` trunk is folded; others are kept as they are.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    if isinstance(network.trunk, nn.Sequential):
        network.trunk = _fold_sequential(network.trunk)
    return network


def _fold_sequential(trunk: nn.Sequential) -> nn.Sequential:
    layers: list[nn.Module] = []
    for layer in trunk:
        before = layers[-1] if layers else None
        if isinstance(layer, nn.BatchNorm2d) and isinstance(before, nn.Conv2d):
            layers[-1] = fuse_conv_bn_eval(before, layer)
        elif isinstance(layer, nn.BatchNorm1d) and isinstance(before, nn.Linear):
            layers[-1] = fuse_linear_bn_eval(before, layer)
        elif not isinstance(layer, nn.Dropout):
            layers.append(layer)
    return nn.Sequential(*layers)
