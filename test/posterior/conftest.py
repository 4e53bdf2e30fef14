"""Tiny networks that build in milliseconds, and oracles: dense matrices by autograd, nothing of the package.

All float64, so that both sides agree to rounding.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, hessian, jacrev

from lla_fusion_ros.networks import SplitNetwork, with_bias_feature

CLASSES, WIDTH, INPUTS = 4, 5, 3


class TinyEnsemble(nn.Module):
    """Unfolded SplitNetworks side by side: what `fit_last_layer` asks of an ensemble, with gradients."""

    def __init__(self, networks: int) -> None:
        super().__init__()
        self.members = nn.ModuleList(
            SplitNetwork(nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.Tanh()), WIDTH, CLASSES)
            for _ in range(networks)
        )

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = torch.stack([member(images) for member in self.members], dim=1)
        features = [with_bias_feature(member.features(images)) for member in self.members]
        return logits, torch.stack(features, dim=1)


@pytest.fixture
def ensemble() -> TinyEnsemble:
    torch.manual_seed(0)
    return TinyEnsemble(networks=2).double()


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randn(40, INPUTS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def fresh() -> torch.Tensor:
    """Images that were not fitted on."""
    return torch.randn(6, INPUTS, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def jacobian(network: torch.nn.Module, names: list[str], image: torch.Tensor) -> np.ndarray:
    """d logits / d parameters at one image, by autograd, flattened in the order of `names`.   [M, P]"""
    parameters = {name: dict(network.named_parameters())[name].detach() for name in names}
    parts = jacrev(lambda p: functional_call(network, p, (image[None],))[0])(parameters)
    return torch.cat([parts[name].flatten(1) for name in names], dim=1).detach().numpy()


def fisher(network: torch.nn.Module, names: list[str], images: torch.Tensor) -> np.ndarray:
    """Eq. 16 literally, over images and classes, one outer product at a time.  [P, P]"""
    total: np.ndarray | float = 0.0
    for image in images:
        pmf = torch.softmax(network(image[None])[0], dim=0).detach().numpy()
        for probability, row in zip(pmf, jacobian(network, names, image), strict=True):
            total = total + probability * (1 - probability) * np.outer(row, row)
    return np.asarray(total)


def hessian_of_cross_entropy(network: torch.nn.Module, names: list[str], images: torch.Tensor) -> np.ndarray:
    """Second derivative of -L_N (eq. 14); for a linear last layer it is the GGN.  [P, P]"""
    own = dict(network.named_parameters())
    parameters = {name: own[name].detach() for name in names}
    labels = torch.zeros(len(images), dtype=torch.long)  # the Hessian of a linear layer ignores the labels

    def loss(p: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(
            functional_call(network, p, (images,)), labels, reduction="sum"
        )

    blocks = hessian(loss)(parameters)
    rows = [
        torch.cat([blocks[a][b].reshape(own[a].numel(), own[b].numel()) for b in names], dim=1) for a in names
    ]
    return torch.cat(rows, dim=0).detach().numpy()


@pytest.fixture
def oracles() -> SimpleNamespace:
    return SimpleNamespace(
        jacobian=jacobian, fisher=fisher, hessian_of_cross_entropy=hessian_of_cross_entropy
    )
