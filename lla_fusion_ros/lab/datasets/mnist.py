"""MNIST and Fashion-MNIST: IDX files, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from lla_fusion_ros.lab.datasets.parts import Part, parts_of
from lla_fusion_ros.lab.datasets.singles import single_images
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import TrackSet

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

_PREFIX = {"train": "train", "test": "t10k"}
_INSIDE = (".", "data", "package/data", "raw")  # where copies of the set keep the files
_MOST_BYTES = 1 << 28  # a header that claims more is damaged


def load_mnist(root: Path, part: Part = "all") -> TrackSet:
    """Handwritten digits, 28 x 28, grey as RGB."""
    return _load("mnist", root, part, DIGITS)


def load_fashion_mnist(root: Path, part: Part = "all") -> TrackSet:
    """Pieces of clothing, 28 x 28, grey as RGB."""
    return _load("fashion-mnist", root, part, CLOTHES)


def _load(name: str, root: Path, part: Part, class_names: tuple[str, ...]) -> TrackSet:
    loaded = []
    for wanted in parts_of(part):
        images = read_idx(_find(root, f"{_PREFIX[wanted]}-images-idx3-ubyte", name), dimensions=3)
        labels = read_idx(_find(root, f"{_PREFIX[wanted]}-labels-idx1-ubyte", name), dimensions=1)
        if len(images) != len(labels):
            raise DatasetError(f"{name} in '{root}': {len(images)} {wanted} images but {len(labels)} labels")
        if len(labels) and labels.max() >= len(class_names):
            raise DatasetError(
                f"{name} in '{root}': label {labels.max()}, expected 0 to {len(class_names) - 1}"
            )
        loaded.append((wanted, np.repeat(images[..., None], 3, axis=-1), labels))
    return single_images(name, class_names, loaded)


def _find(root: Path, stem: str, name: str) -> Path:
    for inside in _INSIDE:
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
