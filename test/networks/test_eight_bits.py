"""Convolutions in 8 bits, against formulas in double precision and against the same networks in 32 bits."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from lla_fusion_ros.networks import Ensemble, SplitNetwork, build_network
from lla_fusion_ros.networks import eight_bits as module
from lla_fusion_ros.networks.network import folded, share_layers
from lla_fusion_ros.types.errors import InputError

ROAD = {"name": "road", "size": 24, "channels": [8, 16, 16, 24], "width": 10}
ODD = {"name": "road", "size": 21, "channels": [6, 10, 14], "width": 7}
POOLED = {**ROAD, "stem": "pool"}


def _trained(architecture, count=3, classes=6):
    members = [build_network(architecture, classes) for _ in range(count)]
    side = architecture["size"]
    for member in members:
        for layer in member.modules():  # means and deviations that differ from channel to channel
            if isinstance(layer, nn.BatchNorm2d):
                nn.init.uniform_(layer.weight, 0.2, 3.0)
                nn.init.uniform_(layer.bias, -1.0, 1.0)
        member.train()
        for _ in range(20):
            member(torch.randn(32, 3, side, side))
    return [member.eval() for member in members]


@pytest.fixture(scope="module")
def road():
    torch.manual_seed(1)
    return _trained(ROAD)


def _in_levels(member, images):
    """One network, convolution by convolution in double precision, rounded to 8 bits where the class does."""
    values = (images.double() * 127 / module.INPUT_REACH).round().clamp(-128, 127)
    values *= module.INPUT_REACH / 127
    layers, before = list(member.trunk), torch.ones(3).double()
    for at, layer in enumerate(layers):
        if isinstance(layer, nn.Flatten):
            break
        if isinstance(layer, nn.Conv2d):
            norm = layers[at + 1]
            gain = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).double()
            after = (norm.bias + module.REACH * norm.weight.abs()).double().clamp_min(1e-3)
            weight = layer.weight.double() * (gain / after)[:, None, None, None] * before[:, None, None]
            scale = weight.abs().amax((1, 2, 3), keepdim=True) / module.WEIGHT_LEVELS
            bias = (norm.bias.double() - norm.running_mean.double() * gain) / after
            weight = (weight / scale).round() * scale
            values = functional.conv2d(values, weight, bias, layer.stride, layer.padding)
            values = (values * 255).round().clamp(0, 255) / 255
            before = after
        elif isinstance(layer, nn.MaxPool2d):
            values = layer(values)
    values = values * before[:, None, None]
    end = list(folded(member).trunk.double())
    return nn.Sequential(*end[[type(layer) for layer in end].index(nn.Flatten) :])(values)


@pytest.mark.parametrize("architecture", [ROAD, ODD, POOLED], ids=["four", "odd sides", "pooled stem"])
def test_features_are_those_of_the_rounded_network(architecture):
    torch.manual_seed(0)
    members = _trained(architecture)
    images = torch.randn(7, 3, architecture["size"], architecture["size"])
    _, features = Ensemble(members, eight_bits=True)(images)
    with torch.no_grad():
        expected = torch.stack([_in_levels(member, images) for member in members], 1)
    wrong = (features[..., :-1] - expected).abs()
    # numbers that lie between two levels may be rounded either way, which the next layers dilute
    assert wrong.median() < 1e-5 * expected.abs().max()
    assert wrong.max() < 0.02 * expected.abs().max()


def test_a_crop_does_not_depend_on_its_batch(road):
    torch.manual_seed(1)
    ensemble = Ensemble(road, eight_bits=True)
    images = torch.randn(9, 3, 24, 24)
    images[3] *= 50  # far outside the range: clipped, and nobody else's business
    every = ensemble(images)[0]
    for row in range(9):
        torch.testing.assert_close(ensemble(images[row : row + 1])[0][0], every[row], rtol=1e-4, atol=1e-4)


def test_members_and_a_part_of_them_agree(road):
    torch.manual_seed(2)
    images = torch.randn(4, 3, 24, 24)
    every, _ = Ensemble(road, eight_bits=True)(images)
    some, _ = Ensemble(road[1:], eight_bits=True)(images)
    torch.testing.assert_close(every[:, 1:], some, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shared", range(5))
def test_blocks_that_members_share_run_once_and_change_nothing(shared, monkeypatch):
    torch.manual_seed(3)
    members = _trained(ROAD)
    share_layers(members, shared)
    images = torch.randn(5, 3, 24, 24)
    once = Ensemble(members, eight_bits=True)
    channels = [len(step._scale) for step in once.trunk.convolutions._steps]
    assert channels == [n if at < shared else 3 * n for at, n in enumerate(ROAD["channels"])]
    monkeypatch.setattr(module, "_equal", lambda blocks: False)
    for first, second in zip(once(images), Ensemble(members, eight_bits=True)(images), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "architecture",
    [
        {"name": "dense", "size": 12, "hidden": [9, 7], "image_channels": 3},
        {"name": "lenet", "size": 20, "width": 9},
        {"name": "alexnet", "size": 16, "width": 8},
    ],
    ids=lambda a: a["name"],
)
def test_networks_without_batch_norm_are_refused(architecture):
    with pytest.raises(InputError, match="int8 needs networks made of plain convolutions"):
        Ensemble([build_network(architecture, 5)], eight_bits=True)


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)],
        [nn.Conv2d(3, 3, 3, groups=3), nn.BatchNorm2d(3), nn.ReLU()],
        [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False), nn.ReLU()],
        [nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(4), nn.ReLU()],
        [nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU()],
        [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3)],
        [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2)],
    ],
)
def test_other_layers_are_refused(layers):
    trunk = nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(5))
    trunk(torch.rand(2, 3, 12, 12))
    with pytest.raises(InputError, match="int8 needs networks"):
        Ensemble([SplitNetwork(trunk, 5, 2)], eight_bits=True)


def _inverse_scale(*arguments):
    """As an earlier torch had it."""
    *before, scale, zero, kind, relu, scalars, algorithm = arguments
    return _POINTWISE(*before, 1 / scale, zero, kind, relu, scalars, algorithm)


_PREPACK, _POINTWISE = torch.ops.onednn.qconv_prepack, torch.ops.onednn.qconv2d_pointwise


@pytest.mark.parametrize(
    "operators",
    [
        object(),
        SimpleNamespace(qconv_prepack=_PREPACK, qconv2d_pointwise=_inverse_scale),
    ],
    ids=["none", "another meaning"],
)
def test_a_torch_without_the_operators_is_named(monkeypatch, road, operators):
    monkeypatch.setattr(module.torch.ops, "onednn", operators)
    monkeypatch.setattr(module, "_available", module._available.__wrapped__)  # what it remembers stays true
    with pytest.raises(InputError, match="oneDNN"):
        Ensemble(road, eight_bits=True)
