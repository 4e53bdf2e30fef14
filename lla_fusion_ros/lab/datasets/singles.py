"""Sets of single images of one size: each becomes a track of one frame, filled by its object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lla_fusion_ros.lab.datasets.images import digest_tracks
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet


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
