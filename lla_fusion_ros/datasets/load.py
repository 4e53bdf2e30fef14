"""One door to every data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lla_fusion_ros.datasets.belgium import load_belgium
from lla_fusion_ros.datasets.cifar10 import load_cifar10
from lla_fusion_ros.datasets.folders import load_folders
from lla_fusion_ros.datasets.gtsrb import load_gtsrb
from lla_fusion_ros.datasets.mnist import load_fashion_mnist, load_mnist
from lla_fusion_ros.datasets.types import TrackSet
from lla_fusion_ros.errors import DatasetError, InputError
from lla_fusion_ros.signworld.tracks import load_signworld

_LOADERS: dict[str, Callable[..., TrackSet]] = {
    "gtsrb": load_gtsrb,
    "belgiumtsc": load_belgium,
    "folders": load_folders,
    "mnist": load_mnist,
    "fashion-mnist": load_fashion_mnist,
    "cifar10": load_cifar10,
    "signworld": load_signworld,
}
_NEED_NO_FOLDER = frozenset({"signworld"})


def dataset_names() -> tuple[str, ...]:
    """The names `load_dataset` knows."""
    return tuple(_LOADERS)


def load_dataset(name: str, root: str | Path | None = None, **options: Any) -> TrackSet:
    """Load a data set from the folder `root`; DatasetError says what was expected where."""
    loader = _LOADERS.get(name)
    if loader is None:
        raise DatasetError(f"data set '{name}' is unknown, expected one of {', '.join(_LOADERS)}")
    known = set(inspect.signature(loader).parameters) - {"root"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise InputError(
            f"data set '{name}' has no option '{unknown[0]}'; it takes {', '.join(sorted(known)) or 'none'}"
        )
    if name in _NEED_NO_FOLDER:
        return loader(**options)
    if root is None:
        raise DatasetError(
            f"data set '{name}' needs its folder: give root (docs/datasets.md says where to get it)"
        )
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise DatasetError(
            f"folder '{folder}' of data set '{name}' does not exist (docs/datasets.md says where to get it)"
        )
    return loader(folder, **options)
