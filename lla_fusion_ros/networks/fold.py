"""Fold batch norm into the layer before it and drop dropout: the same function, fewer operations."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from lla_fusion_ros.networks.network import SplitNetwork


def folded(network: SplitNetwork) -> SplitNetwork:
    """A copy for inference. Only a flat `nn.Sequential` trunk is folded; others are kept as they are."""
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
