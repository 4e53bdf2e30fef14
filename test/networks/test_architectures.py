"""The networks by name."""

import pytest
import torch
from torch import nn

from lla_fusion_ros.networks import architecture_names, build_network, register_architecture
from lla_fusion_ros.types.errors import InputError

SIZES = {
    "road": {"name": "road", "size": 40},
    "dense": {"name": "dense", "size": 28, "image_channels": 3},
    "lenet": {"name": "lenet", "size": 32},
    "alexnet": {"name": "alexnet", "size": 32},
}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_logits_are_the_head_applied_to_the_features(name):
    network = build_network(SIZES[name], classes=7).eval()
    images = torch.rand(3, 3, SIZES[name]["size"], SIZES[name]["size"])
    features = network.features(images)
    assert features.ndim == 2
    torch.testing.assert_close(network(images), network.head(features))
    assert network(images).shape == (3, 7)


@pytest.mark.parametrize("stem", ["stride", "pool"])
@pytest.mark.parametrize("size", [32, 33, 40, 47, 48, 64])
def test_the_road_network_takes_any_size(size, stem):
    architecture = {"name": "road", "size": size, "channels": [4, 4, 4, 4], "width": 5, "stem": stem}
    assert build_network(architecture, 3).eval()(torch.rand(2, 3, size, size)).shape == (2, 3)


def test_an_unknown_stem_is_refused():
    with pytest.raises(InputError, match="'stride' or 'pool', not 'root'"):
        build_network({"name": "road", "size": 32, "stem": "root"}, 3)


def test_the_papers_dense_network_has_five_layers():
    network = build_network({"name": "dense", "size": 28}, 10)
    assert sum(isinstance(layer, nn.Linear) for layer in network.modules()) == 5


def test_an_unknown_architecture_is_refused_by_name():
    with pytest.raises(InputError, match="'transformer'.*road"):
        build_network({"name": "transformer", "size": 32}, 3)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(InputError, match="colour"):
        build_network({"name": "road", "size": 32, "colour": 1}, 3)


def test_a_network_of_the_users_own_is_built_by_its_name():
    def builder(size, width):
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, width)), width

    register_architecture("test_own", builder)
    assert "test_own" in architecture_names()
    network = build_network({"name": "test_own", "size": 8, "width": 4}, classes=2)
    assert network(torch.rand(5, 3, 8, 8)).shape == (5, 2)
