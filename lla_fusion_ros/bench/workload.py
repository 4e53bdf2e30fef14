"""Networks, posteriors and tracks of any size, with random numbers: speed does not depend on knowledge."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, BundleMeta, make_bundle
from lla_fusion_ros.networks import Normalisation, build_network
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.track_views import TrackViews

SIZE = 32  # pixels, the side of the crops
NETWORKS = 5


def random_crops(count: int, size: int = SIZE) -> np.ndarray:
    """[count, size, size, 3] uint8"""
    return np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def random_posterior(networks: int, classes: int, features: int, seed: int = 0) -> EnsemblePosterior:
    """Precisions as few hundred examples would leave them."""
    rng = np.random.default_rng(seed)
    factors = np.tril(rng.normal(size=(networks, classes, features, features)), -1) * 0.1
    factors += np.eye(features) * rng.uniform(1.0, 3.0, size=(networks, classes, features, 1))
    return EnsemblePosterior(factors, prior_precision=1.0)


def random_tracks(tracks: int, steps: int, posterior: EnsemblePosterior, seed: int = 0) -> TrackViews:
    """Tracks whose views agree on a class."""
    rng = np.random.default_rng(seed)
    networks, classes, size = posterior.networks, posterior.classes, posterior.features
    label = rng.integers(0, classes, tracks)
    centres = np.random.default_rng(99).normal(size=(classes, networks, size)) * 2.0
    noise = rng.normal(size=(tracks, steps, networks, size))
    features = np.maximum(centres[label][:, None] + noise, 0.0)
    features[..., -1] = 1.0
    logits = rng.normal(size=(tracks, steps, networks, classes))
    logits[np.arange(tracks), :, :, label] += 6.0
    return TrackViews(
        logits=logits.astype(np.float32),
        features=features.astype(np.float32),
        camera=np.zeros((tracks, steps), np.int64),
        steps=np.full(tracks, steps),
        label=label,
        regime=np.full(tracks, "clean"),
        source=np.arange(tracks),
    )


def random_bundle(
    classes: int,
    width: int,
    networks: int = NETWORKS,
    architecture: dict[str, Any] | None = None,
) -> Bundle:
    """A bundle of the vehicle's network ('road') with `width` features, or of another architecture."""
    chosen = {"name": "road", "size": SIZE, **(architecture or {}), "width": width}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        members = [build_network(chosen, classes).eval() for _ in range(networks)]
    posterior = random_posterior(networks, classes, width + 1)
    meta = BundleMeta(
        architecture=chosen,
        networks=networks,
        class_names=tuple(f"class {index}" for index in range(classes)),
        input_size=SIZE,
        crop_margin=0.1,
        normalisation=Normalisation().as_dict(),
        prior_precision=1.0,
        posterior_temperature=1.0,
        default_fuser="mean_pmf",
        fusers={},
        warnings={},
        package_version=__version__,
    )
    return make_bundle(meta, members, posterior, {})
