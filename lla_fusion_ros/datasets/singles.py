"""Sets of single images of one size: each becomes a track of one frame, filled by its object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from lla_fusion_ros.datasets.images import digest_tracks
from lla_fusion_ros.datasets.types import Frame, Track, TrackSet
from lla_fusion_ros.errors import InputError

Part = Literal["train", "test", "all"]


def parts_of(part: Part) -> tuple[Literal["train", "test"], ...]:
    """The parts that a word stands for."""
    parts: dict[str, tuple[Literal["train", "test"], ...]] = {
        "train": ("train",),
        "test": ("test",),
        "all": ("train", "test"),
    }
    if part not in parts:
        raise InputError(f"part '{part}' is unknown, expected one of {', '.join(parts)}")
    return parts[part]


def single_images(
    name: str, class_names: tuple[str, ...], parts: Sequence[tuple[str, np.ndarray, np.ndarray]]
) -> TrackSet:
    """A TrackSet of parts, each a name, images [n, height, width, 3] and labels [n]."""
    tracks = [
        Track(
            f"{part}/{number:05d}",
            int(label),
            (Frame(image, (0.0, 0.0, float(image.shape[1]), float(image.shape[0]))),),
        )
        for part, images, labels in parts
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return TrackSet(name, class_names, tuple(tracks), digest_tracks(class_names, tracks))
