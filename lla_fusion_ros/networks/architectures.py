"""The networks by name: the paper's three, one for vehicles, and the user's own.

An architecture is a plain dictionary, so that it can travel in a bundle as JSON:
`{"name": "road", "size": 32, "channels": [24, 48, 96, 96], "width": 64}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import nn

from lla_fusion_ros.networks.network import SplitNetwork
from lla_fusion_ros.networks.plugins import registers_installed
from lla_fusion_ros.types.errors import InputError

Architecture = dict[str, Any]
TrunkBuilder = Callable[..., tuple[nn.Module, int]]  # options of the architecture -> trunk, its width

_BUILDERS: dict[str, TrunkBuilder] = {}


def register_architecture(name: str, builder: TrunkBuilder) -> None:
    """Make a network of your own known by name, so that bundles that name it can be loaded.

    `builder(size=..., **options)` returns the trunk and the number of features it gives.
    """
    _BUILDERS[name] = builder


def architecture_names() -> tuple[str, ...]:
    return tuple(sorted(_BUILDERS))


def build_network(architecture: Architecture, classes: int) -> SplitNetwork:
    """A freshly initialised network; InputError names an unknown architecture or option."""
    options = dict(architecture)
    name = options.pop("name", None)
    if name not in _BUILDERS and not registers_installed(str(name)):
        known = ", ".join(architecture_names())
        raise InputError(
            f"unknown network architecture {name!r}; known are {known}; "
            "a network of your own comes in by the parameter or option `plugins` (docs/train.md)"
        )
    try:
        trunk, width = _BUILDERS[name](**options)
    except TypeError as error:
        raise InputError(f"network architecture {name!r} does not take these options: {error}") from None
    return SplitNetwork(trunk, width, classes)


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]


def _road(
    size: int,
    channels: tuple[int, ...] = (24, 48, 96, 96),
    width: int = 64,
    dropout: float = 0.2,
    image_channels: int = 3,
    stem: str = "stride",
) -> tuple[nn.Module, int]:
    """The network for a vehicle: convolutions with batch norm, the image halved at once for speed.

    The first layer halves the image, in steps of two pixels (stem "stride") or by pooling ("pool", which
    sees every pixel and costs a quarter more); every second later one is followed by pooling; a fully
    connected layer keeps *where* things are, which a sign's digits need (global pooling loses it).
    """
    if len(channels) not in (3, 4):
        raise InputError(f"architecture 'road' takes 3 or 4 channel counts, not {len(channels)}")
    if stem not in ("stride", "pool"):
        raise InputError(f"architecture 'road' has stem 'stride' or 'pool', not {stem!r}")
    first, second, third = channels[:3]
    pooled = stem == "pool"
    layers = [
        *_conv(image_channels, first, kernel=5, stride=1 if pooled else 2),
        *([nn.MaxPool2d(2)] if pooled else []),
        *_conv(first, second),
        nn.MaxPool2d(2),
        *_conv(second, third),
        nn.MaxPool2d(2),
    ]
    if len(channels) == 4:
        layers += _conv(third, channels[3])
    side = (size // 2 if pooled else math.ceil(size / 2)) // 4
    flat = channels[-1] * side * side
    layers += [nn.Flatten(), nn.Dropout(dropout), nn.Linear(flat, width, bias=False)]
    layers += [nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers), width


def _dense(
    size: int, hidden: tuple[int, ...] = (256, 128, 64, 32), image_channels: int = 1
) -> tuple[nn.Module, int]:
    """The paper's MNIST network: five fully connected layers, of which the head is the fifth."""
    layers: list[nn.Module] = [nn.Flatten()]
    inputs = image_channels * size * size
    for outputs in hidden:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers), inputs


def _lenet(size: int, width: int = 84, image_channels: int = 3) -> tuple[nn.Module, int]:
    """The paper's CIFAR-10 network, LeNet5-like: two convolutions and two hidden dense layers."""
    side = (size // 2 - 4) // 2
    if side < 1:
        raise InputError(f"architecture 'lenet' needs crops of at least 12 px, not {size}")
    layers = [
        nn.Conv2d(image_channels, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * side * side, 120),
        nn.ReLU(),
        nn.Linear(120, width),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers), width


def _alexnet(size: int, width: int = 256, image_channels: int = 3) -> tuple[nn.Module, int]:
    """The paper's camera-trap network, AlexNet-like, with strides fit for crops of 32 to 128 px."""
    side = size // 16
    if side < 1:
        raise InputError(f"architecture 'alexnet' needs crops of at least 16 px, not {size}")
    layers: list[nn.Module] = []
    inputs = image_channels
    for outputs, kernel, pooled in (
        (48, 5, True),
        (96, 5, True),
        (128, 3, True),
        (128, 3, False),
        (96, 3, True),
    ):
        layers += [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.ReLU()]
        if pooled:
            layers.append(nn.MaxPool2d(2))
        inputs = outputs
    layers += [nn.Flatten(), nn.Dropout(0.5), nn.Linear(inputs * side * side, width), nn.ReLU()]
    layers += [nn.Dropout(0.5), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers), width


register_architecture("road", _road)
register_architecture("dense", _dense)
register_architecture("lenet", _lenet)
register_architecture("alexnet", _alexnet)
