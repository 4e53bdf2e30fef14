"""Networks in 8 bits on a CPU: about a third of the time of single precision, nearly the same numbers.

No data is needed to choose the scales: batch norm says how each channel is distributed, mean `bias` and
deviation `weight`, so that almost nothing lies above bias + REACH weight. Each channel is divided by that,
which a ReLU and a maximum let through, and the next layer's weights are multiplied by it: then one scale
serves all channels of all networks (Nagel et al. 2019, data-free quantization through equalization).
Only convolutions are run so. The features and all that follows stay in single precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lla_fusion_ros.networks.network import equal_layers
from lla_fusion_ros.types.errors import InputError

REACH = 10.0  # deviations: what a stranger excites is kept, too
INPUT_REACH = 6.0  # of a normalised image, in its own deviations
INPUT_SCALE, INPUT_ZERO = INPUT_REACH / 127, 128
OUTPUT_SCALE = 1 / 255
# Pairs of products are summed in 16 bits where a CPU lacks VNNI: 2 * 255 * 63 fits, 2 * 255 * 127 does not.
WEIGHT_LEVELS = 63


class NotInEightBitsError(InputError):
    """These networks, or this torch, cannot be run in 8 bits."""


class EightBitConvolutions(nn.Module):
    """The convolutions of several networks, up to where their trunks become flat.

    forward(images [crops, channels, S, S]) -> [crops, networks * channels, h, w], each channel divided by its
    entry in `ranges`, which has a list for each network. Leading blocks that are the same in all networks run
    once; `shared`: they all are, and one network's channels stand for all.
    """

    def __init__(self, trunks: Sequence[nn.Module]) -> None:
        super().__init__()
        if not _available():
            raise NotInEightBitsError("precision int8 needs a torch with the 8-bit convolutions of oneDNN")
        listed = [_blocks(trunk) for trunk in trunks]
        self.ranges = [torch.ones(blocks[0].convolution.in_channels) for blocks in listed]
        self._steps: list[_Step] = []
        self.shared = True
        for blocks in zip(*listed, strict=True):
            read_by_all, self.shared = self.shared, self.shared and _equal(blocks)
            after = [block.range() for block in blocks]
            own = blocks[:1] if self.shared else blocks
            groups = 1 if read_by_all else len(own)
            self._steps.append(_Step(own, self.ranges, after, groups, first=not self._steps))
            self.ranges = after

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        levels = images.mul(1 / INPUT_SCALE).add_(INPUT_ZERO).round_().clamp_(0, 255).to(torch.uint8)
        for step in self._steps:
            levels = step(levels)
        return levels.to(torch.float32).mul_(OUTPUT_SCALE)


@cache
def _available() -> bool:
    """Whether this torch has the operators, and with the meaning they have here: a small block is tried.

    They are not part of torch's documented interface; versions of torch differ in what a scale means.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block = _Block(nn.Conv2d(3, 16, 3, padding=1).eval(), nn.BatchNorm2d(16).eval(), True)
        image = torch.rand(2, 3, 8, 8) * 2 - 1
    levels = torch.round(image / INPUT_SCALE)
    exact = functional.relu(block.convolution(levels * INPUT_SCALE)) / block.range()[:, None, None]
    try:
        found = _Step([block], [torch.ones(3)], [block.range()], groups=1, first=True)(
            (levels + INPUT_ZERO).to(torch.uint8).to(memory_format=torch.channels_last)
        )
    except (AttributeError, RuntimeError, TypeError):
        return False
    wrong = found * OUTPUT_SCALE - functional.max_pool2d(exact, 2)
    return bool(wrong.abs().max() < 3 * OUTPUT_SCALE)


@dataclass(frozen=True, slots=True)
class _Block:
    """A convolution with what belongs to it; a ReLU follows."""

    convolution: nn.Conv2d
    norm: nn.BatchNorm2d
    pooled: bool

    def range(self) -> torch.Tensor:
        """What a channel hardly ever exceeds.  [channels]"""
        return (self.norm.bias + REACH * self.norm.weight.abs()).detach().clamp_min(1e-3)

    def folded(self, before: torch.Tensor, after: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight and bias for inputs that were divided by `before` and outputs to be divided by `after`."""
        fused = fuse_conv_bn_eval(self.convolution, self.norm)
        assert fused.bias is not None
        weight = fused.weight.detach() * before[:, None, None] / after[:, None, None, None]
        return weight, fused.bias.detach() / after


class _Step:
    """The same block of all networks as one convolution: grouped, or of one group where all read the same.

    `before` and `after` have the ranges of every network, which `blocks` may be too few for: one for all.
    """

    def __init__(
        self,
        blocks: Sequence[_Block],
        before: list[torch.Tensor],
        after: list[torch.Tensor],
        groups: int,
        first: bool,
    ) -> None:
        folded = [block.folded(b, a) for block, b, a in zip(blocks, before, after, strict=False)]
        weight, self._bias = (torch.cat(parts) for parts in zip(*folded, strict=True))
        self._scale = weight.abs().amax(dim=(1, 2, 3)).clamp_min(1e-8) / WEIGHT_LEVELS
        self._zero = torch.zeros(len(weight), dtype=torch.int32)
        like = blocks[0].convolution
        self._input = (INPUT_SCALE, INPUT_ZERO) if first else (OUTPUT_SCALE, 0)
        self._geometry = [*map(list, (like.stride, like.padding, like.dilation)), groups]
        self._levels = (weight / self._scale[:, None, None, None]).round().to(torch.int8)
        self._packed: dict[torch.Size, torch.Tensor] = {}
        self._pooled = blocks[0].pooled

    def _weight(self, images: torch.Size) -> torch.Tensor:
        """The weights in the layout that oneDNN wants for images of this size, whatever their number.

        In any other layout it would rearrange them with every call, which takes longer than all the rest.
        """
        if images[1:] not in self._packed:
            self._packed[images[1:]] = torch.ops.onednn.qconv_prepack(
                self._levels, self._scale, *self._input, *self._geometry, images
            )
        return self._packed[images[1:]]

    def __call__(self, levels: torch.Tensor) -> torch.Tensor:
        weights = self._weight(levels.shape), self._scale, self._zero, self._bias
        levels = torch.ops.onednn.qconv2d_pointwise(
            levels, *self._input, *weights, *self._geometry, OUTPUT_SCALE, 0, torch.uint8, "relu", [], ""
        )
        return _pooled(levels) if self._pooled else levels


def _equal(blocks: Sequence[_Block]) -> bool:
    return equal_layers([nn.Sequential(block.convolution, block.norm) for block in blocks])


def _pooled(levels: torch.Tensor) -> torch.Tensor:
    """MaxPool2d(2), which torch does not have for bytes."""
    rows, columns = (side // 2 * 2 for side in levels.shape[2:])
    halved = torch.maximum(levels[:, :, 0:rows:2], levels[:, :, 1:rows:2])
    return torch.maximum(halved[..., 0:columns:2], halved[..., 1:columns:2])


def _blocks(trunk: nn.Module) -> list[_Block]:
    """The blocks before the trunk becomes flat."""
    layers: list[nn.Module] = list(trunk) if isinstance(trunk, nn.Sequential) else []
    flat = next((at for at, layer in enumerate(layers) if isinstance(layer, nn.Flatten)), 0)
    blocks = list(_grouped(layers[:flat]))
    if not blocks:
        raise _unfit()
    return blocks


def _grouped(layers: Sequence[nn.Module]) -> Iterator[_Block]:
    at = 0
    while at < len(layers):
        convolution, norm, relu = (*layers[at : at + 3], None, None)[:3]
        if not isinstance(convolution, nn.Conv2d) or not isinstance(norm, nn.BatchNorm2d):
            raise _unfit()
        padded = convolution.padding_mode == "zeros" and isinstance(convolution.padding, tuple)
        if not (padded and convolution.groups == 1 and norm.affine and isinstance(relu, nn.ReLU)):
            raise _unfit()
        at += 3
        pooled = at < len(layers) and _halves(layers[at])
        at += pooled
        yield _Block(convolution, norm, pooled)


def _halves(layer: nn.Module) -> bool:
    return (
        isinstance(layer, nn.MaxPool2d)
        and layer.kernel_size in (2, (2, 2))
        and layer.stride in (2, (2, 2))
        and layer.padding in (0, (0, 0))
        and layer.dilation in (1, (1, 1))
        and not layer.ceil_mode
    )


def _unfit() -> NotInEightBitsError:
    return NotInEightBitsError(
        "precision int8 needs networks made of plain convolutions, each followed by batch norm, ReLU and "
        "perhaps MaxPool2d(2), such as 'road'; use float32"
    )
