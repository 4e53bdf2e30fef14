"""What every network is: a trunk that gives features, and a linear head that gives logits."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from lla_fusion_ros.types.errors import InputError


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


def equal_layers(layers: Sequence[nn.Module]) -> bool:
    """Whether the layers do the same with the same numbers."""
    first, *others = layers
    numbers = first.state_dict()
    return all(
        repr(other) == repr(first)
        and all(torch.equal(value, numbers[name]) for name, value in other.state_dict().items())
        for other in others
    )


def parted(trunks: Sequence[nn.Module]) -> tuple[nn.Sequential, list[nn.Module]]:
    """The leading layers that are the same in all trunks, and what follows in each of them."""
    listed = [list(trunk) for trunk in trunks if isinstance(trunk, nn.Sequential)]
    if len(listed) < len(trunks):
        return nn.Sequential(), list(trunks)
    same = 0
    while same < min(map(len, listed)) and equal_layers([layers[same] for layers in listed]):
        same += 1
    return nn.Sequential(*listed[0][:same]), [nn.Sequential(*layers[same:]) for layers in listed]


def share_layers(members: Sequence[SplitNetwork], convolutions: int) -> tuple[nn.Sequential, list[nn.Module]]:
    """Members use the first one's layers up to so many convolutions: these, and what follows in each."""
    if convolutions == 0:
        return nn.Sequential(), [member.trunk for member in members]
    trunks = [member.trunk for member in members if isinstance(member.trunk, nn.Sequential)]
    found = [at for at, layer in enumerate(trunks[0]) if isinstance(layer, nn.Conv2d)] if trunks else []
    if convolutions > len(found):
        raise InputError(f"networks with {len(found)} convolutions in a row cannot share {convolutions}")
    flat = next((at for at, layer in enumerate(trunks[0]) if isinstance(layer, nn.Flatten)), len(trunks[0]))
    first = [*found, flat][convolutions]
    for trunk in trunks:
        for at in range(first):
            trunk[at] = trunks[0][at]
    return nn.Sequential(*list(trunks[0])[:first]), [trunk[first:] for trunk in trunks]


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
