"""Training crops, freshly degraded for every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from lla_fusion_ros.datasets import TrackSet, apply_plan, augmentation_plan, cut
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.training.settings import TrainSettings


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Crops with some of their surroundings, so that augmentation can move over real pixels.

    Attributes:
        images: [crops, size + 2 border, size + 2 border, 3] uint8
        labels: [crops]
        border: pixels of surroundings on each side.
    """

    images: np.ndarray
    labels: np.ndarray
    border: int

    def __len__(self) -> int:
        return len(self.images)


def training_data(tracks: TrackSet, settings: TrainSettings) -> TrainingData:
    """Cut the training tracks, a quarter of the crop's side as surroundings."""
    border = settings.size // 4
    crops = cut(tracks, settings.size, settings.margin, border)
    if len(crops.label) < settings.batch:
        raise InputError(
            f"data set '{tracks.name}' has {len(crops.label)} training crops, "
            f"fewer than one batch of {settings.batch}"
        )
    return TrainingData(crops.images, crops.label, border)


def steps_per_epoch(data: TrainingData, settings: TrainSettings) -> int:
    return len(data) // settings.batch


def epoch_batches(
    data: TrainingData, settings: TrainSettings, stream: tuple[int, ...]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of one epoch: crops [batch, S, S, 3] uint8 and labels [batch]; equal streams, equal batches.

    The crops are degraded in slices, so that an epoch never stands in memory twice.
    """
    rng = np.random.default_rng(stream)
    order = rng.permutation(len(data))
    per_slice = 8 * settings.batch
    usable = steps_per_epoch(data, settings) * settings.batch
    for start in range(0, usable, per_slice):
        rows = order[start : min(start + per_slice, usable)]
        plan = augmentation_plan(len(rows), rng, settings.clean, settings.hard)
        images = torch.from_numpy(apply_plan(data.images[rows], data.border, plan, rng))
        labels = torch.from_numpy(data.labels[rows])
        for first in range(0, len(rows), settings.batch):
            part = slice(first, first + settings.batch)
            yield images[part], labels[part]
