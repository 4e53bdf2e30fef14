"""One network of the paper's experiments: trained once, then read from the cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from lla_fusion_ros.lab.paper.experiments import Experiment
from lla_fusion_ros.lab.paper.network import lenet_pooled  # noqa: F401  importing registers it
from lla_fusion_ros.networks import SplitNetwork, build_network


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
