"""All networks in one call."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lla_fusion_ros.networks import Ensemble, Normalisation, SplitNetwork, build_network
from lla_fusion_ros.networks.network import folded, share_layers
from lla_fusion_ros.types.errors import InputError

ARCHITECTURES = (
    {"name": "road", "size": 24, "channels": [4, 6, 8, 8], "width": 5},
    {"name": "road", "size": 17, "channels": [4, 6, 8], "width": 5},
    {"name": "road", "size": 23, "channels": [4, 6, 8], "width": 5, "stem": "pool"},
    {"name": "dense", "size": 12, "hidden": [9, 7], "image_channels": 3},
    {"name": "lenet", "size": 20, "width": 9},
    {"name": "alexnet", "size": 16, "width": 8},
)


def _trained(architecture, count=3, classes=6):
    """Networks whose batch norm has seen data, so that folding it is not trivial."""
    members = [build_network(architecture, classes) for _ in range(count)]
    for member in members:
        member.train()
        for _ in range(3):
            member(torch.randn(16, 3, architecture["size"], architecture["size"]) * 2 + 1)
    return [member.eval() for member in members]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: f"{a['name']}{a['size']}")
def test_grouped_members_give_what_each_gives_alone(architecture):
    torch.manual_seed(0)
    members = _trained(architecture)
    images = torch.randn(5, 3, architecture["size"], architecture["size"])
    logits, features = Ensemble(members, grouped=True)(images)
    with torch.no_grad():
        torch.testing.assert_close(logits, torch.stack([m(images) for m in members], 1), atol=1e-5, rtol=1e-4)
        alone = torch.stack([m.features(images) for m in members], 1)
    torch.testing.assert_close(features[..., :-1], alone, atol=1e-5, rtol=1e-4)
    assert (features[..., -1] == 1).all()


def test_grouped_and_looped_members_agree():
    torch.manual_seed(1)
    members = _trained(ARCHITECTURES[0])
    images = torch.randn(4, 3, 24, 24)
    for first, second in zip(Ensemble(members, True)(images), Ensemble(members, False)(images), strict=True):
        torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shared", range(5))
def test_layers_that_members_share_run_once_and_change_nothing(shared):
    torch.manual_seed(2)
    members = _trained(ARCHITECTURES[0])
    share_layers(members, shared)
    images = torch.randn(4, 3, 24, 24)
    ensemble = Ensemble(members)
    with torch.no_grad():
        expected = torch.stack([member(images) for member in members], 1)
    torch.testing.assert_close(ensemble(images)[0], expected, atol=1e-5, rtol=1e-4)
    alone = [
        _work(layer, side) for layer, side in zip(_convolutions(members[0]), (12, 12, 6, 3), strict=True)
    ]
    wanted = sum(work if number < shared else 3 * work for number, work in enumerate(alone))
    assert _counted(ensemble, images[:1], torch.ops.aten.convolution) == wanted


def test_five_networks_that_share_three_convolutions_cost_half_as_much_again_as_one():
    members = [
        build_network({"name": "road", "size": 40, "channels": [32, 64, 128, 80]}, 43) for _ in range(5)
    ]
    share_layers(members, 3)
    plain = build_network({"name": "road", "size": 40, "channels": [32, 64, 128, 128]}, 43)
    image = torch.zeros(1, 3, 40, 40)
    assert _counted(Ensemble(members), image) < 1.5 * _counted(Ensemble([plain]), image)


def _convolutions(member):
    return [layer for layer in member.trunk if isinstance(layer, nn.Conv2d)]


def _work(layer, side):
    """Multiply-adds for an output of this side, doubled as torch counts them."""
    return 2 * layer.weight.numel() * side * side


def _counted(ensemble, images, operator=None):
    with FlopCounterMode(display=False) as counter:
        ensemble(images)
    return counter.get_flop_counts()["Global"][operator] if operator else counter.get_total_flops()


def test_a_trunk_of_unknown_layers_runs_as_a_loop_and_cannot_be_forced_into_groups():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, images):
            return torch.sin(self.layer(images.mean((2, 3))))

    members = [SplitNetwork(Odd(), 4, 2).eval() for _ in range(2)]
    images = torch.rand(3, 3, 8, 8)
    logits, _ = Ensemble(members)(images)
    torch.testing.assert_close(logits[:, 1], members[1](images).detach())
    with pytest.raises(InputError, match="cannot be grouped"):
        Ensemble(members, grouped=True)


@pytest.mark.parametrize("eight_bits", [False, True])
def test_an_ensemble_does_not_change_its_members(eight_bits):
    members = _trained(ARCHITECTURES[0])
    before = [{k: v.clone() for k, v in m.state_dict().items()} for m in members]
    Ensemble(members, eight_bits=eight_bits)(torch.rand(2, 3, 24, 24))
    for member, state in zip(members, before, strict=True):
        assert all(torch.equal(member.state_dict()[name], state[name]) for name in state)


def test_an_empty_ensemble_is_refused():
    with pytest.raises(InputError, match="at least one"):
        Ensemble([])


def test_folding_leaves_no_batch_norm_and_no_dropout():
    layers = list(folded(_trained(ARCHITECTURES[0])[0]).modules())
    assert not any(isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d | nn.Dropout) for layer in layers)


def test_per_crop_normalisation_ignores_exposure_and_contrast():
    crops = torch.randint(0, 100, (4, 8, 8, 3), dtype=torch.uint8)
    normalise = Normalisation(kind="per_crop", floor=0.0)
    torch.testing.assert_close(normalise(crops), normalise(crops * 2 + 20), atol=1e-5, rtol=1e-5)


def test_an_empty_crop_stays_finite_and_small():
    images = Normalisation()(torch.full((1, 8, 8, 3), 17, dtype=torch.uint8))
    assert images.abs().max() < 1e-3


def test_fixed_normalisation_and_gray_follow_their_formula():
    crops = torch.randint(0, 256, (2, 4, 4, 3), dtype=torch.uint8)
    images = Normalisation(kind="fixed", mean=0.5, std=0.25, gray=True)(crops)
    expected = ((crops.float().mean(-1) / 255) - 0.5) / 0.25
    torch.testing.assert_close(images[:, 0], expected)


@pytest.mark.parametrize("options", [{"kind": "magic"}, {"std": 0.0}, {"floor": -1.0}])
def test_impossible_normalisation_is_refused(options):
    with pytest.raises(InputError):
        Normalisation(**options)
