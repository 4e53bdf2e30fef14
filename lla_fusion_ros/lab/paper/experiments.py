"""What the paper trained on which data, as far as it says, and what had to be decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lla_fusion_ros.networks import Normalisation
from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, slots=True)
class Experiment:
    """One row of networks of the paper's table 1.

    Attributes:
        dataset, outside: names of the data sets in and out of distribution; outside None: not scored.
        networks, epochs: as printed in section "Experiment study".
        validation: training images kept back for every scalar that is tuned (the paper does not say).
        batch: images per step; the paper does not say.
        shift: training images are mirrored and moved by up to so many pixels, fresh in every epoch.
        decay: the step size falls linearly to zero in the course of the training.
    """

    dataset: str
    outside: str | None
    networks: int
    epochs: int
    architecture: dict[str, Any]
    normalisation: Normalisation
    validation: int = 5000
    batch: int = 128
    shift: int = 0
    decay: bool = False


EXPERIMENTS: dict[str, Experiment] = {
    "mnist": Experiment(
        dataset="mnist",
        outside="fashion-mnist",
        networks=10,
        epochs=3,
        architecture={"name": "dense", "size": 28},
        normalisation=Normalisation(kind="fixed", mean=0.1307, std=0.3081, gray=True),
    ),
    "cifar10": Experiment(
        dataset="cifar10",
        outside=None,
        networks=5,
        epochs=10,
        architecture={"name": "lenet_pooled", "size": 32, "channels": [32, 64, 128, 256]},
        normalisation=Normalisation(kind="fixed", mean=0.4734, std=0.2516),
        batch=64,
        shift=2,
        decay=True,
    ),
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment '{name}'; choose one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
