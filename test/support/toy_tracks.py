"""A data set of a few dozen small tracks that a tiny network learns in seconds."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.lab.datasets.images import digest_tracks
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

NAMES = ("left", "right", "top")


def toy_tracks(per_class: int = 12, frames: int = 5, size: int = 20, seed: int = 0) -> TrackSet:
    """Three classes: which part of a noisy image is bright; the colour differs from track to track."""
    rng = np.random.default_rng(seed)
    parts = (
        (slice(None), slice(0, size // 2)),
        (slice(None), slice(size // 2, None)),
        (slice(0, size // 2), slice(None)),
    )
    tracks = []
    for number in range(per_class * len(NAMES)):
        label = number % len(NAMES)
        colour = rng.uniform(120, 255, 3)
        shown = []
        for step in range(frames):
            image = rng.uniform(0, 70, (size, size, 3))
            image[parts[label]] += colour * 0.7
            box = (2.0, 2.0, size - 2.0, size - 2.0)
            shown.append(Frame(np.clip(image, 0, 255).astype(np.uint8), box, step % 2, 0.1 * step))
        tracks.append(Track(f"{NAMES[label]}/{number}", label, tuple(shown)))
    return TrackSet("toy", NAMES, tuple(tracks), digest_tracks(NAMES, tuple(tracks)))
