"""All networks of a bundle in one batched call.

Measured on one CPU core (channels last, 5 'road' networks of 24-48-96-96 channels, ms per call of
1 / 20 / 120 crops): a Python loop over networks 1.82 / 13.9 / 78, grouped convolutions 1.30 / 13.0 / 85,
torch.vmap 2.60 / 27.9 / 165. Hence grouped where the layers are known, else the loop; never vmap.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from lla_fusion_ros.networks.eight_bits import EightBitConvolutions, NotInEightBitsError
from lla_fusion_ros.networks.network import SplitNetwork, equal_layers, folded
from lla_fusion_ros.types.errors import InputError

_ELEMENTWISE = (nn.ReLU, nn.Identity)
_POOLING = (nn.MaxPool2d, nn.AvgPool2d)


class Ensemble(nn.Module):
    """Networks of one architecture, for inference: batch norm folded, no gradients.

    forward(images [crops, channels, S, S]) -> logits [crops, networks, classes],
    features [crops, networks, D] with the trailing 1.

    Args:
        grouped: layer by layer for all networks at once; by itself where the layers are known.
        eight_bits: run the convolutions in 8 bits, on an x86 CPU.
    """

    def __init__(
        self, members: Sequence[SplitNetwork], grouped: bool | None = None, eight_bits: bool = False
    ) -> None:
        super().__init__()
        if not members:
            raise InputError("an ensemble needs at least one network")
        inference = [folded(member) for member in members]
        can_group = all(isinstance(m.trunk, nn.Sequential) for m in inference) and _can_group(
            inference[0].trunk
        )
        if grouped and not can_group:
            raise InputError("these networks have layers that cannot be grouped; leave `grouped` unset")
        self.networks = len(inference)
        trunks = [member.trunk for member in inference]
        self.trunk: nn.Module
        if eight_bits:
            self.trunk = _EightBitTrunk([member.trunk for member in members], trunks)
        elif can_group if grouped is None else grouped:
            self.trunk = _GroupedTrunk(trunks)
        else:
            self.trunk = _LoopedTrunk(trunks)
        # one weight matrix with the bias as its last row: logits are a single batched product
        heads = [torch.cat([m.head.weight, m.head.bias[:, None]], dim=1).T for m in inference]
        self.register_buffer("head", torch.stack(heads).contiguous())  # [networks, D, classes]
        self.requires_grad_(False).eval()
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    head: torch.Tensor

    @property
    def classes(self) -> int:
        return self.head.shape[2]

    @property
    def features(self) -> int:
        """D, the bias feature included."""
        return self.head.shape[1]

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = with_bias_feature(self.trunk(images))  # [networks, crops, D]
        logits = torch.bmm(features, self.head)
        return logits.transpose(0, 1), features.transpose(0, 1)


class _LoopedTrunk(nn.Module):
    """Members one after the other; for trunks whose layers are not known here."""

    def __init__(self, trunks: list[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(trunks)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.stack([trunk(images) for trunk in self.members])  # [networks, crops, d]


class _StackedLinear(nn.Module):
    """A linear layer of every network as one batched product."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.register_buffer("weight", torch.stack([layer.weight.T for layer in layers]).contiguous())
        zero = torch.zeros(layers[0].out_features)
        biases: list[torch.Tensor] = [zero if layer.bias is None else layer.bias for layer in layers]
        self.register_buffer("bias", torch.stack(biases)[:, None])  # [networks, 1, outputs]

    weight: torch.Tensor
    bias: torch.Tensor

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.baddbmm(self.bias, values, self.weight)


class _SplitNetworks(nn.Module):
    """[crops, networks * channels, h, w] -> [networks, crops, channels * h * w]"""

    def __init__(self, networks: int, shared: bool) -> None:
        super().__init__()
        self.networks = networks
        self.shared = shared  # no layer of the networks' own came before: every network gets the same

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if self.shared:
            return values.flatten(1).expand(self.networks, -1, -1)
        stacked = values.contiguous().view(len(values), self.networks, -1)
        return stacked.transpose(0, 1)


class _GroupedTrunk(nn.Module):
    """The trunks layer by layer: convolutions grouped by network, linear layers as batched products.

    Leading layers that are the same in all networks run once.

    Args:
        shared: the first layer of all networks reads the same values.
    """

    def __init__(self, trunks: Sequence[nn.Module], shared: bool = True) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for same in zip(*trunks, strict=True):
            if isinstance(same[0], nn.Conv2d) and shared and equal_layers(same):
                layers.append(same[0])
            elif isinstance(same[0], nn.Conv2d):
                layers.append(_grouped_convolution(same, shared))
                shared = False
            elif isinstance(same[0], nn.Flatten):
                layers.append(_SplitNetworks(len(trunks), shared))
            elif isinstance(same[0], nn.Linear):
                layers.append(_StackedLinear(same))
            else:
                layers.append(same[0])
        self.layers = nn.ModuleList(layers)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            # every ReLU follows a layer that made a fresh tensor, so it may work in place
            images = functional.relu_(images) if isinstance(layer, nn.ReLU) else layer(images)
        return images


class _EightBitTrunk(nn.Module):
    """Convolutions in 8 bits, the layers after them as they are.

    Args:
        trained: the trunks with their batch norm, which tells the scales.
        inference: the same trunks, folded.
    """

    def __init__(self, trained: list[nn.Module], inference: list[nn.Module]) -> None:
        super().__init__()
        self.convolutions = EightBitConvolutions(trained)
        ends = [_from_flat(trunk) for trunk in inference]
        for end, ranges in zip(ends, self.convolutions.ranges, strict=True):
            linear = end[1]  # what each channel was divided by is multiplied here
            if not isinstance(linear, nn.Linear) or not _can_group(end):
                raise NotInEightBitsError("precision int8 needs linear layers after the convolutions")
            linear.weight.data *= ranges.repeat_interleave(linear.in_features // len(ranges))
        self.end = _GroupedTrunk(ends, self.convolutions.shared)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.end(self.convolutions(images))


def _from_flat(trunk: nn.Module) -> nn.Sequential:
    """The layers of a trunk from where it becomes flat."""
    layers = list(trunk.children())
    at = next(index for index, layer in enumerate(layers) if isinstance(layer, nn.Flatten))
    return nn.Sequential(*layers[at:])


def _can_group(trunk: nn.Module) -> bool:
    assert isinstance(trunk, nn.Sequential)
    flat = False
    for layer in trunk:
        if isinstance(layer, nn.Flatten) and not flat:
            flat = True
        elif isinstance(layer, nn.Linear):
            if not flat:
                return False
        elif isinstance(layer, nn.Conv2d):
            if flat or layer.groups != 1 or layer.padding_mode != "zeros":
                return False
        elif isinstance(layer, _POOLING):
            if flat:
                return False
        elif not isinstance(layer, _ELEMENTWISE):
            return False
    return flat and not isinstance(trunk[0], nn.ReLU)


def _grouped_convolution(layers: Sequence[nn.Conv2d], shared: bool) -> nn.Conv2d:
    """One convolution for all networks; `shared`: it reads the same values for all of them."""
    first, count = layers[0], len(layers)
    groups = 1 if shared else count
    grouped = nn.Conv2d(
        first.in_channels * groups,
        first.out_channels * count,
        first.kernel_size,  # type: ignore[arg-type]
        first.stride,  # type: ignore[arg-type]
        first.padding,  # type: ignore[arg-type]
        first.dilation,  # type: ignore[arg-type]
        groups=groups,
        bias=first.bias is not None,
    )
    grouped.weight.data = torch.cat([layer.weight for layer in layers])
    if grouped.bias is not None:
        grouped.bias.data = torch.cat([layer.bias for layer in layers if layer.bias is not None])
    return grouped


def with_bias_feature(features: torch.Tensor) -> torch.Tensor:
    """Append the 1 that carries the bias, so that logits are one product with D = d + 1 features."""
    return torch.cat([features, features.new_ones(*features.shape[:-1], 1)], dim=-1)
