"""Fit the posterior of the last layers in one pass over the training data, with memory constant in its size.

The data term of eq. 13b is a sum over images, so each curvature is a running sum with two verbs:
`add(logits, features)` for a batch and `finish(prior_precision)` for the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Literal, Protocol

import numpy as np
import torch

from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior, factor_with_prior
from lla_fusion_ros.posterior.full import FullPosterior, FullSum
from lla_fusion_ros.posterior.kron import KronPosterior, KronSum
from lla_fusion_ros.posterior.outer_sum import outer_sum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax

Curvature = Literal["diagonal", "full", "kron"]
Posterior = EnsemblePosterior | FullPosterior | KronPosterior


class DiagonalSum:
    """The paper's Fisher information (eq. 16): eta_m = f_m (1 - f_m), classes decoupled.

    State: one sum per network and class.   [networks, classes, D, D]
    """

    def __init__(self, networks: int, classes: int, features: int) -> None:
        self.sums = np.zeros((networks, classes, features, features))

    def add(self, logits: np.ndarray, features: np.ndarray) -> None:
        """One batch: logits [n, networks, classes], features [n, networks, D]."""
        pmf = softmax(logits)
        eta = pmf * (1.0 - pmf)  # eq. 16b
        for network, total in enumerate(self.sums):
            phi = features[:, network]
            total += outer_sum(eta[:, network], phi, phi)

    def finish(self, prior_precision: float) -> EnsemblePosterior:
        return EnsemblePosterior(factor_with_prior(self.sums, prior_precision), float(prior_precision))


class RunningSum(Protocol):
    def __init__(self, networks: int, classes: int, features: int) -> None: ...
    def add(self, logits: np.ndarray, features: np.ndarray) -> None: ...
    def finish(self, prior_precision: float) -> Any: ...


def prior_precision_of(weight_decay: float, images: int) -> float:
    """P0^-1 that makes training the search for the posterior's mode (eq. 15).

    Training minimises the *mean* cross-entropy plus weight_decay/2 |theta|^2; times the number of images that
    is -L_N(theta) + images * weight_decay/2 |theta|^2, hence P0^-1 = weight_decay * images.
    """
    if weight_decay <= 0 or images < 1:
        raise InputError(
            f"weight decay {weight_decay} on {images} images gives no proper prior; "
            "train with a positive weight decay or state the prior precision"
        )
    return weight_decay * images


def fit_last_layer(
    ensemble: torch.nn.Module,
    loader: Iterable[Any],
    prior_precision: float,
    curvature: Curvature = "diagonal",
    cross: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Posterior:
    """The Laplace posterior of the last layer of every network (eq. 13).

    Args:
        ensemble: maps images [n, ...] to logits [n, networks, classes] and features [n, networks, D].
        loader: batches of images, or tuples that begin with the images; read once.
        prior_precision: P0^-1; see `prior_precision_of`.
        curvature: `diagonal` (the paper's), `full` (diag p - p p^T) or `kron` (its Kronecker approximation).
        cross: also the covariance between networks (`diagonal` only); all blocks then share the eta of the
            ensemble's mean pmf, which makes the joint matrix positive semidefinite by construction.
        progress: called with the number of images of each batch.
    """
    if not (np.isfinite(prior_precision) and prior_precision > 0):
        raise InputError(f"prior precision is {prior_precision}, it must be finite and > 0")
    kinds: dict[str, type[RunningSum]] = {"diagonal": DiagonalSum, "full": FullSum, "kron": KronSum}
    if curvature not in kinds:
        raise InputError(f"curvature is {curvature!r}, expected one of {', '.join(kinds)}")
    if cross and curvature != "diagonal":
        raise InputError(f"cross-network covariance needs curvature 'diagonal', not {curvature!r}")
    kind = CrossSum if cross else kinds[curvature]
    total: RunningSum | None = None
    for logits, features in predictions(ensemble, loader):
        if total is None:
            total = kind(logits.shape[1], logits.shape[2], features.shape[2])
        total.add(logits, features)
        if progress is not None:
            progress(len(logits))
    if total is None:
        raise InputError("cannot fit a posterior: the data loader is empty")
    posterior: Posterior = total.finish(prior_precision)
    return posterior


def predictions(ensemble: torch.nn.Module, loader: Iterable[Any]) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """Logits [n, networks, classes] and features [n, networks, D] of each batch, float64, checked finite."""
    device = next(chain(ensemble.parameters(), ensemble.buffers())).device
    was_training = ensemble.training
    ensemble.eval()
    try:
        for batch in loader:
            images = batch[0] if isinstance(batch, tuple | list) else batch
            with torch.no_grad():
                logits, features = ensemble(images.to(device))
            pair = logits.double().cpu().numpy(), features.double().cpu().numpy()
            if not all(np.isfinite(array).all() for array in pair):
                raise InputError(
                    "the networks return NaN or infinity on the training data; training diverged"
                )
            yield pair
    finally:
        ensemble.train(was_training)
