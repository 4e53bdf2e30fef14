"""Small posteriors and views with random numbers, for tests of fusion and warnings."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.views import Views


def make_posterior(
    networks: int = 3,
    classes: int = 4,
    features: int = 6,
    cross: bool = False,
    temperature: float = 1.3,
    seed: int = 0,
) -> EnsemblePosterior:
    """A posterior as training on 60 random examples would leave it, cross blocks included on request."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(networks, 60, features))
    phi[..., -1] = 1.0
    eta = rng.uniform(0.02, 0.25, size=(classes, 60))
    blocks = np.einsum("mn,cnd,enf->cemdf", eta, phi, phi)
    own = np.stack([blocks[c, c] for c in range(networks)]) + np.eye(features)
    return EnsemblePosterior(np.linalg.cholesky(own), 1.0, temperature, blocks if cross else None)


def make_views(posterior: EnsemblePosterior, tracks: int, seed: int = 0, scale: float = 3.0) -> Views:
    """One random view of each track."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(tracks, posterior.networks, posterior.classes))
    features = rng.normal(size=(tracks, posterior.networks, posterior.features))
    features[..., -1] = 1.0
    return Views(logits, features)
