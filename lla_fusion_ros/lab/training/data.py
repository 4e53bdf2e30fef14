"""Training crops, freshly degraded for every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lla_fusion_ros.lab.datasets import TrackSet, apply_plan, augmentation_plan, border_of, cut
from lla_fusion_ros.lab.datasets.background import backgrounds
from lla_fusion_ros.lab.datasets.outliers import OUTLIER_KINDS
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.types.errors import InputError

_CROPS_PER_OPERATION = 4
_BACKGROUND_PLACES = 1500
_OTHER_PLACES = 10_000  # added to the seed: warnings are fitted against places not seen in training


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Crops with some of their surroundings, so that augmentation can move over real pixels.

    Attributes:
        images: [crops, size + 2 border, size + 2 border, 3] uint8
        labels: [crops]
        border: pixels of surroundings on each side.
        background: crops of what is no object at all, of the same shape; may be none.
        mirrored: the class that the mirror image of each class shows, -1: none.   [classes]
    """

    images: np.ndarray
    labels: np.ndarray
    border: int
    background: np.ndarray
    mirrored: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


def training_data(
    tracks: TrackSet, settings: TrainSettings, background: str | Path | None = None
) -> TrainingData:
    """Cut the training tracks, a quarter of the crop's side as surroundings.

    With `background` drawn scenery joins the synthetic outliers, and places in the natural images below the
    folder that it names.
    """
    border = border_of(settings.size)
    crops = cut(tracks, settings.size, settings.margin, border)
    if len(set(crops.label.tolist())) < 2:
        raise InputError(f"data set '{tracks.name}' has training tracks of one class only")
    mirrored = np.full(len(tracks.class_names), -1)
    for label, other in enumerate(tracks.mirrored):
        mirrored[label] = -1 if other is None else other
    places = np.empty((0, *crops.images.shape[1:]), np.uint8)
    if background is not None:
        found = backgrounds(_BACKGROUND_PLACES, 2, settings.seed + _OTHER_PLACES, background)
        places = np.concatenate([cut(each, settings.size, settings.margin, border).images for each in found])
    return TrainingData(crops.images, crops.label, border, places, mirrored)


def batch_size(data: TrainingData, settings: TrainSettings) -> int:
    """Crops per step: as told, or a quarter of all crops where they do not fill one batch."""
    return settings.batch if len(data) >= settings.batch else max(len(data) // 4, 2)


def steps_per_epoch(data: TrainingData, settings: TrainSettings) -> int:
    return max(int(settings.share * len(data)) // batch_size(data, settings), 1)


def epoch_batches(
    data: TrainingData, settings: TrainSettings, stream: tuple[int, ...]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of one epoch: crops [batch + outliers, S, S, 3] uint8 and labels, -1 for synthetic outliers.

    Equal streams give equal batches. The crops are degraded in slices, so that an epoch never stands in
    memory twice.
    """
    rng = np.random.default_rng(stream)
    order = _order(data, settings.balance, rng)
    size = batch_size(data, settings)
    per_slice = 8 * size
    usable = steps_per_epoch(data, settings) * size
    for start in range(0, usable, per_slice):
        rows = order[start : min(start + per_slice, usable)]
        batches = len(rows) // size
        strange = _outliers(data, batches * round(settings.outliers * size), rng)
        known, known_labels = _some_mirrored(data, rows, rng)
        images = np.concatenate([known, strange])
        labels = np.concatenate([known_labels, np.full(len(strange), -1)])
        plan = augmentation_plan(
            len(images),
            rng,
            settings.clean,
            settings.hard,
            settings.faded,
            settings.relit,
            settings.coded,
        )
        images = apply_plan(images, data.border, plan, rng)
        for batch in range(batches):
            part = np.r_[
                batch * size : (batch + 1) * size,
                len(rows) + batch : len(images) : batches,
            ]
            yield torch.from_numpy(images[part]), torch.from_numpy(labels[part])


def _order(data: TrainingData, balance: float, rng: np.random.Generator) -> np.ndarray:
    """The crops of an epoch: each once, or rare classes more often."""
    if balance == 0:
        return rng.permutation(len(data))
    weights = np.bincount(data.labels)[data.labels] ** -balance
    return rng.choice(len(data), len(data), p=weights / weights.sum())


def _some_mirrored(
    data: TrainingData, rows: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The crops and labels of `rows`; of signs whose mirror image is a sign, every second one mirrored."""
    images, labels = data.images[rows], data.labels[rows]
    turned = (data.mirrored[labels] >= 0) & (rng.random(len(rows)) < 0.5)
    images[turned] = images[turned, :, ::-1]
    return images, np.where(turned, data.mirrored[labels], labels)


def _outliers(data: TrainingData, count: int, rng: np.random.Generator) -> np.ndarray:
    """Synthetic outliers, half of them background if there is some; operations change every few crops."""
    side = data.images.shape[1]
    reach = (side - 2 * data.border) / side
    kinds = list(OUTLIER_KINDS.values())
    made = [data.images[:0]]
    natural = count // 2 if len(data.background) else 0
    for start in range(0, count - natural, _CROPS_PER_OPERATION):
        size = min(_CROPS_PER_OPERATION, count - natural - start)
        own = rng.integers(0, len(data), size)
        other = rng.integers(0, len(data), size)
        same = data.labels[own] == data.labels[other]
        while same.any():  # swapping parts within a class would make an ordinary crop
            other[same] = rng.integers(0, len(data), int(same.sum()))
            same = data.labels[own] == data.labels[other]
        operation = kinds[int(rng.integers(len(kinds)))]
        made.append(operation(data.images[own], data.images[other], reach, rng))
    if natural:
        made.append(data.background[rng.integers(0, len(data.background), natural)])
    return rng.permutation(np.concatenate(made))
