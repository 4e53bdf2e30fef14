"""One door to every data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lla_fusion_ros.lab.datasets.folders import load_folders, load_karoo
from lla_fusion_ros.lab.datasets.sign_sets import load_belgium, load_gtsrb
from lla_fusion_ros.lab.datasets.single_images import load_cifar10, load_fashion_mnist, load_mnist
from lla_fusion_ros.signworld.tracks import load_signworld
from lla_fusion_ros.types.errors import DatasetError, InputError, unknown_name
from lla_fusion_ros.types.track_set import TrackSet

Progress = Callable[[int, int], None]  # tracks done, of how many

_LOADERS: dict[str, Callable[..., TrackSet]] = {
    "gtsrb": load_gtsrb,
    "belgiumtsc": load_belgium,
    "folders": load_folders,
    "karoo": load_karoo,
    "mnist": load_mnist,
    "fashion-mnist": load_fashion_mnist,
    "cifar10": load_cifar10,
    "signworld": load_signworld,
}
_NEED_NO_FOLDER = frozenset({"signworld"})


def dataset_names() -> tuple[str, ...]:
    """The names `load_dataset` knows."""
    return tuple(_LOADERS)


def load_dataset(
    name: str,
    root: str | Path | None = None,
    progress: Progress | None = None,
    crop_size: int | None = None,
    to_score: bool = False,
    **options: Any,
) -> TrackSet:
    """Load a data set from the folder `root`; DatasetError says what was expected where.

    `progress` hears how far a data set is that takes long because it is rendered. `crop_size` is the side of
    the crops that will be cut: photographs are kept no larger than these need. With `to_score` the folder may
    hold some of the classes only; they keep their numbers.
    """
    loader = _LOADERS.get(name)
    if loader is None:
        raise DatasetError(unknown_name("data set", name, _LOADERS))
    known = set(inspect.signature(loader).parameters) - {"root", "progress", "crop_size"}
    if to_score and "partial" in known:
        options = {"partial": True, **options}
    unknown = sorted(set(options) - known)
    if unknown:
        raise InputError(
            f"data set '{name}': {unknown_name('option', unknown[0], sorted(known))}"
            if known
            else f"data set '{name}' takes no options, so none called '{unknown[0]}'"
        )
    if name in _NEED_NO_FOLDER:
        return loader(**options, progress=progress)
    if root is None:
        raise DatasetError(
            f"data set '{name}' needs its folder: give root (docs/train.md says where to get it)"
        )
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise DatasetError(
            f"folder '{folder}' of data set '{name}' does not exist (docs/train.md says where to get it)"
        )
    if crop_size is not None and "crop_size" in inspect.signature(loader).parameters:
        options["crop_size"] = crop_size
    return loader(folder, **options)
