"""Tracks in which some frames are confident of a wrong class."""

import numpy as np


def tracks_with_bad_frames(posterior, tracks=60, steps=8, seed=0):
    """Good frames point to the label; bad ones are as confident of a random class, but have long features."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, posterior.classes, tracks)
    bad = rng.random((tracks, steps)) < 0.4
    shown = np.where(bad, rng.integers(0, posterior.classes, (tracks, steps)), label[:, None])
    shape = (tracks, steps, posterior.networks)
    logits = rng.normal(0, 1.0, (*shape, posterior.classes))
    logits += 3.0 * np.eye(posterior.classes)[shown][:, :, None]
    features = rng.normal(0, 1, (*shape, posterior.features)) * np.where(bad, 4.0, 1.0)[..., None, None]
    features[..., -1] = 1.0
    return logits, features, np.full(tracks, steps), label
