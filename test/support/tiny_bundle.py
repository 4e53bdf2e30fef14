"""A small bundle with random weights, made in well under two seconds, for tests of everything above it."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, BundleMeta, make_bundle
from lla_fusion_ros.networks import Architecture, Normalisation, build_network
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior


def tiny_bundle(
    classes: int = 4,
    networks: int = 2,
    size: int = 16,
    width: int = 6,
    seed: int = 0,
    margin: float = 0.1,
    default_fuser: str = "mean_pmf",
    architecture: Architecture | None = None,
) -> Bundle:
    """Random networks with a valid posterior; equal arguments give equal bundles. Save with save_bundle."""
    architecture = architecture or {"name": "road", "size": size, "channels": [4, 6, 8], "width": width}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        members = [build_network(architecture, classes).eval() for _ in range(networks)]
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(networks, classes, 40, width + 1))
    blocks = data.swapaxes(-1, -2) @ data + np.eye(width + 1)
    meta = BundleMeta(
        architecture=architecture,
        networks=networks,
        class_names=tuple(f"class {index}" for index in range(classes)),
        input_size=size,
        crop_margin=margin,
        normalisation=Normalisation().as_dict(),
        prior_precision=1.0,
        posterior_temperature=1.0,
        default_fuser=default_fuser,
        package_version=__version__,
    )
    return make_bundle(meta, members, EnsemblePosterior(np.linalg.cholesky(blocks), prior_precision=1.0))
