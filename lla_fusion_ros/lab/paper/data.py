"""The images of an experiment as arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.paper.network_outputs import Images
from lla_fusion_ros.types.errors import DatasetError


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
