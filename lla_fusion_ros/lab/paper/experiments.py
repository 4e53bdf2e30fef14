"""The paper's experiments: what was trained on which data, as far as it says, and training it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.networks import Normalisation, SplitNetwork, build_network, register_architecture
from lla_fusion_ros.types.errors import DatasetError, InputError


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


@dataclass(frozen=True, slots=True)
class Images:
    """Images of one data set and their labels: RGB uint8 [images, size, size, 3], [images]."""

    images: np.ndarray
    labels: np.ndarray

    def part(self, rows: slice) -> Images:
        return Images(self.images[rows], self.labels[rows])


def load_images(name: str, root: Path, part: str) -> tuple[Images, tuple[str, ...]]:
    """`part` is "train" or "test"; also the class names. `root` holds a folder per data set."""
    folder = root / name
    if not folder.is_dir():
        raise DatasetError(
            f"folder '{folder}' does not exist; "
            f"`python tools/get_datasets.py --to {root} --only {name}` fetches it"
        )
    tracks = load_dataset(name, folder, part=part)
    images = np.stack([track.frames[0].image for track in tracks.tracks])
    return Images(images, np.array([track.label for track in tracks.tracks])), tracks.class_names


def lenet_pooled(size: int, channels: Sequence[int], width: int = 84) -> tuple[nn.Module, int]:
    """The network of the CIFAR-10 experiment, for images of `size` pixels: its trunk and the trunk's width.

    The paper says "LeNet5 inspired" and prints 82% for one network after ten epochs; LeNet5 itself (6 and 16
    channels) stops near 65% there. This one keeps LeNet5's plan, convolutions each followed by pooling and
    then dense layers of 128 and 84, with four stages of more channels and batch norm. Pooling stands before
    batch norm, which so has a quarter of the pixels to go through.
    """
    layers: list[nn.Module] = []
    inputs, side = 3, size
    for outputs in channels:
        layers += [nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.MaxPool2d(2)]
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        inputs, side = outputs, side // 2
    layers += [nn.Flatten(), nn.Linear(inputs * side * side, 128), nn.ReLU()]
    layers += [nn.Linear(128, width), nn.ReLU()]
    return nn.Sequential(*layers), width


register_architecture("lenet_pooled", lenet_pooled)


def load_or_train(
    experiment: Experiment,
    images: np.ndarray,
    labels: np.ndarray,
    seed: tuple[int, int],
    folder: Path,
    progress: Callable[[str, int, int], None],
) -> SplitNetwork:
    """The member `seed[1]` of the ensemble `seed[0]`."""
    classes = int(labels.max()) + 1
    file = folder / f"member{seed[1]}.safetensors"
    torch.manual_seed(1000 * seed[0] + seed[1])
    member = build_network(experiment.architecture, classes)
    if file.is_file():
        member.load_state_dict(load_file(file))
        return member.eval()
    _train(member, experiment, images, labels, progress, f"seed {seed[0]}, network {seed[1] + 1}")
    folder.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    save_file({key: value.contiguous() for key, value in member.state_dict().items()}, part)
    os.replace(part, file)
    return member


def _train(
    member: SplitNetwork,
    experiment: Experiment,
    images: np.ndarray,
    labels: np.ndarray,
    progress: Callable[[str, int, int], None],
    what: str,
) -> None:
    """Adam with its standard settings on the cross-entropy (eq. 14), as the paper trains.

    The package's own training (training/) degrades crops and averages weights: another recipe.
    """
    member.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    pixels, targets = torch.from_numpy(images), torch.from_numpy(np.asarray(labels, np.int64))
    optimiser = torch.optim.Adam(member.parameters())
    count = len(targets)
    steps = experiment.epochs * -(-count // experiment.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 1 - step / steps if experiment.decay else 1.0
    )
    for epoch in range(experiment.epochs):
        for rows in torch.randperm(count).split(experiment.batch):
            batch = experiment.normalisation(pixels[rows])
            if experiment.shift:
                batch = _moved(batch, experiment.shift)
            batch = batch.contiguous(memory_format=torch.channels_last)
            loss = functional.cross_entropy(member(batch), targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        progress(what, epoch + 1, experiment.epochs)
    member.eval()


def _moved(images: torch.Tensor, most: int) -> torch.Tensor:
    """Each image mirrored with probability 1/2 and moved by up to `most` pixels, edges reflected."""
    count, _, height, width = images.shape
    turned = torch.rand(count) < 0.5
    images = torch.where(turned[:, None, None, None], images.flip(3), images)
    padded = functional.pad(images, (most,) * 4, mode="reflect").permute(0, 2, 3, 1)
    down, right = torch.randint(0, 2 * most + 1, (2, count, 1, 1))
    rows = down + torch.arange(height)[:, None]  # [images, height, 1]
    columns = right + torch.arange(width)  # [images, 1, width]
    return padded[torch.arange(count)[:, None, None], rows, columns].permute(0, 3, 1, 2)
