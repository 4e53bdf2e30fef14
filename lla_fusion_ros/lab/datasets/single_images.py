"""MNIST, Fashion-MNIST and CIFAR-10: sets of single images, each a track of one frame."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from lla_fusion_ros.lab.datasets.images import Part, digest_tracks, parts_of, read_image
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

DIGITS = tuple(str(digit) for digit in range(10))
CLOTHES = (
    "T-shirt",
    "trousers",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)

_MNIST_PREFIX = {"train": "train", "test": "t10k"}
_MNIST_INSIDE = (".", "data", "package/data", "raw")  # where copies of the set keep the files
_MOST_BYTES = 1 << 28  # a header that claims more is damaged

CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_CIFAR10_SIDE = 32
_PIXELS = _CIFAR10_SIDE * _CIFAR10_SIDE
_BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
_CIFAR10_INSIDE = (".", "package", "cifar-10-batches-bin")  # where copies of the set keep the files


def single_images(
    name: str, class_names: tuple[str, ...], parts: Sequence[tuple[str, np.ndarray, np.ndarray]]
) -> TrackSet:
    """A TrackSet of parts, each its name ("train" or "test"), images [n, height, width, 3] and labels [n]."""
    tracks = [
        Track(
            f"{part}/{number:05d}",
            int(label),
            (Frame(image, (0.0, 0.0, float(image.shape[1]), float(image.shape[0]))),),
            part,
        )
        for part, images, labels in parts
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return TrackSet(name, class_names, tuple(tracks), digest_tracks(class_names, tracks))


def load_mnist(root: Path, part: Part = "all") -> TrackSet:
    """Handwritten digits, 28 x 28, grey as RGB."""
    return _load("mnist", root, part, DIGITS)


def load_fashion_mnist(root: Path, part: Part = "all") -> TrackSet:
    """Pieces of clothing, 28 x 28, grey as RGB."""
    return _load("fashion-mnist", root, part, CLOTHES)


def _load(name: str, root: Path, part: Part, class_names: tuple[str, ...]) -> TrackSet:
    loaded = []
    for wanted in parts_of(part):
        images = read_idx(_find(root, f"{_MNIST_PREFIX[wanted]}-images-idx3-ubyte", name), dimensions=3)
        labels = read_idx(_find(root, f"{_MNIST_PREFIX[wanted]}-labels-idx1-ubyte", name), dimensions=1)
        if len(images) != len(labels):
            raise DatasetError(f"{name} in '{root}': {len(images)} {wanted} images but {len(labels)} labels")
        if len(labels) and labels.max() >= len(class_names):
            raise DatasetError(
                f"{name} in '{root}': label {labels.max()}, expected 0 to {len(class_names) - 1}"
            )
        loaded.append((wanted, np.repeat(images[..., None], 3, axis=-1), labels))
    return single_images(name, class_names, loaded)


def _find(root: Path, stem: str, name: str) -> Path:
    for inside in _MNIST_INSIDE:
        for spelling in (stem, stem.replace("-idx", ".idx")):
            for path in (root / inside / spelling, root / inside / f"{spelling}.gz"):
                if path.is_file():
                    return path
    raise DatasetError(
        f"no {name} in '{root}': expected the file {stem} or {stem}.gz (tools/get_datasets.py fetches it)"
    )


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The array of an IDX file of bytes; DatasetError where the file is damaged or cut short."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(4 + 4 * dimensions)
            if len(header) < 4 + 4 * dimensions or header[:4] != bytes((0, 0, 8, dimensions)):
                raise DatasetError(f"'{path}' is no IDX file of bytes with {dimensions} dimensions")
            shape = tuple(int(size) for size in np.frombuffer(header, ">u4", dimensions, 4))
            count = int(np.prod(shape, dtype=object))
            if count > _MOST_BYTES:
                raise DatasetError(f"'{path}' claims the shape {shape}; its header is damaged")
            data = file.read(count)
            rest = file.read(1)  # also makes gzip compare its checksum
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"'{path}' cannot be read: {error}; copy the file again") from error
    if len(data) < count:
        raise DatasetError(f"'{path}' is cut short: {len(data)} of {count} bytes; copy the file again")
    if rest:
        raise DatasetError(f"'{path}' is longer than the {count} bytes it claims; copy the file again")
    return np.frombuffer(data, np.uint8).reshape(shape)


def load_cifar10(root: Path, part: Part = "all") -> TrackSet:
    """Photographs of ten kinds of things, 32 x 32."""
    for inside in _CIFAR10_INSIDE:
        if (root / inside / "test_batch.bin").is_file():
            read = _read_binary
        elif (root / inside / "test_batch.png").is_file():
            read = _read_png
        else:
            continue
        parts = [(wanted, *read(root / inside, wanted)) for wanted in parts_of(part)]
        return single_images("cifar10", CIFAR10_NAMES, parts)
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
        images.append(rows[:, 1:].reshape(-1, 3, _CIFAR10_SIDE, _CIFAR10_SIDE).transpose(0, 2, 3, 1))
    return np.ascontiguousarray(np.concatenate(images)), np.concatenate(labels)


def _read_png(folder: Path, part: Literal["train", "test"]) -> tuple[np.ndarray, np.ndarray]:
    """One picture per batch, an image a row; the labels of all batches in one JSON list."""
    images = []
    for batch in _BATCHES[part]:
        rows = read_image(folder / f"{batch}.png")
        if rows.shape[1] != _PIXELS:
            raise DatasetError(f"'{folder / batch}.png' is {rows.shape[1]} pixels wide, expected {_PIXELS}")
        images.append(rows.reshape(-1, _CIFAR10_SIDE, _CIFAR10_SIDE, 3))
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
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(CIFAR10_NAMES):
        raise DatasetError(f"'{path}' has labels {labels.min()} to {labels.max()}, expected 0 to 9")
    return labels
