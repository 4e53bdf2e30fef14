"""The networks of the CIFAR-10 experiment: LeNet5 as one would build it today.

The paper says "LeNet5 inspired" and prints 82% for one network after ten epochs; LeNet5 itself (6 and 16
channels) stops near 65% there. These keep LeNet5's plan, convolutions that halve the image and then dense
layers, with more stages, more channels and batch norm. In the small one strides do the halving, which costs
accuracy: fifteen of them are trained on one CPU core in an hour. The large one has four stages and halves by
pooling, as LeNet5 does; it takes several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lla_fusion_ros.networks import register_architecture


def lenet_strided(
    size: int, channels: Sequence[int] = (32, 64, 96), width: int = 84
) -> tuple[nn.Module, int]:
    """Trunk and its width, for images of `size` pixels with three channels."""
    return _plan(size, channels, width, pooled=False)


def lenet_pooled(
    size: int, channels: Sequence[int] = (32, 96, 192, 256), width: int = 84
) -> tuple[nn.Module, int]:
    """Trunk and its width, for images of `size` pixels with three channels."""
    return _plan(size, channels, width, pooled=True)


def _plan(size: int, channels: Sequence[int], width: int, pooled: bool) -> tuple[nn.Module, int]:
    layers: list[nn.Module] = []
    inputs, side, kernel, stride = 3, size, 5, 1 if pooled else 2
    for outputs in channels:
        layers.append(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False))
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if pooled else []
        inputs, side, kernel = outputs, side // 2 if pooled else (side + 1) // 2, 3
    layers += [nn.Flatten(), nn.Linear(inputs * side * side, 128), nn.ReLU()]
    layers += [nn.Linear(128, width), nn.ReLU()]
    return nn.Sequential(*layers), width


register_architecture("lenet_strided", lenet_strided)
register_architecture("lenet_pooled", lenet_pooled)
