"""Uncertainty in the last k layers of one network: Jacobians by torch.func and a dense covariance.

The paper lets "the later layers" be uncertain. With more than the last layer the logits are no longer linear
in the parameters and classes no longer decouple, so the general forms run as printed:

    information   I = sum_n sum_m eta_mn J_mn J_mn^T + P0^-1        (eq. 16)
    two views     [R_c]_{ij} = T_theta J_i I^-1 J_j^T                (eq. 17c, 21)

Cost: one backward pass per class and image, and a matrix of parameters x parameters. `ensemble.py` is the
fast default; this is for asking whether more layers would change the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg import solve_triangular
from torch import nn
from torch.func import functional_call, jacrev, vmap

from lla_fusion_ros.posterior.contrasts import contrasts
from lla_fusion_ros.posterior.ensemble import factor_with_prior
from lla_fusion_ros.posterior.full import LARGEST
from lla_fusion_ros.types.errors import InputError

CHUNK_NUMBERS = 1 << 24  # entries of the Jacobians alive at once: 64 MB of float32


def last_layers(network: nn.Module, k: int) -> tuple[str, ...]:
    """Names of the parameters of the last k layers that have any, in the order they are defined."""
    layers = [
        [f"{prefix}.{name}" if prefix else name for name, _ in module.named_parameters(recurse=False)]
        for prefix, module in network.named_modules()
    ]
    layers = [names for names in layers if names]
    if not 1 <= k <= len(layers):
        raise InputError(
            f"cannot take the last {k} layers of a network that has {len(layers)} with parameters"
        )
    return tuple(name for names in layers[-k:] for name in names)


def jacobians(network: nn.Module, names: Sequence[str], images: torch.Tensor) -> np.ndarray:
    """d logits / d parameters, flattened in the order of `names`.   [n, classes, parameters] float64"""
    own = {name: value.detach() for name, value in network.named_parameters()}
    fixed = {name: value for name, value in own.items() if name not in names}
    fixed.update({name: value.detach() for name, value in network.named_buffers()})
    free = {name: own[name] for name in names}

    def logits(parameters: dict[str, torch.Tensor], image: torch.Tensor) -> torch.Tensor:
        return functional_call(network, {**fixed, **parameters}, (image[None],))[0]

    parts = vmap(jacrev(logits), in_dims=(None, 0))(free, images)
    return torch.cat([parts[name].flatten(2) for name in names], dim=2).double().cpu().numpy()


@dataclass(frozen=True, slots=True)
class LastKPosterior:
    """Gaussian posterior over some layers of one network.

    Attributes:
        network: in evaluation mode.
        names: its uncertain parameters, in the order of the rows of `factor`.
        factor: lower Cholesky of the information plus prior.     [parameters, parameters]
        coupled: the curvature was `full`, so covariances are given as contrasts.
        temperature: T_theta.
    """

    network: nn.Module
    names: tuple[str, ...]
    factor: np.ndarray
    prior_precision: float
    coupled: bool = False
    temperature: float = 1.0

    def footprint(self, images: torch.Tensor) -> np.ndarray:
        """L^-1 J^T of each image.   [n, parameters, classes]"""
        j = jacobians(self.network, self.names, images)
        n, classes, parameters = j.shape
        flat = solve_triangular(self.factor, j.reshape(n * classes, parameters).T, lower=True)
        return flat.reshape(parameters, n, classes).transpose(1, 0, 2)

    def covariance(self, first: torch.Tensor, second: torch.Tensor | None = None) -> np.ndarray:
        """Covariance of the logits of image i of `first` with image i of `second`.   [n, classes, classes]"""
        left = self.footprint(first)
        right = left if second is None else self.footprint(second)
        covariance = self.temperature * left.swapaxes(-1, -2) @ right
        return contrasts(covariance) if self.coupled else covariance

    def joint_covariance(self, images: torch.Tensor) -> np.ndarray:
        """R_c over all views of one object, view by view.   [n * classes, n * classes]"""
        prints = self.footprint(images)  # [n, parameters, classes]
        n, _, classes = prints.shape
        blocks = np.einsum("ipm,jpk->ijmk", prints, prints, optimize=True)
        if self.coupled:
            blocks = contrasts(blocks)
        return self.temperature * blocks.transpose(0, 2, 1, 3).reshape(n * classes, n * classes)

    def with_temperature(self, temperature: float) -> LastKPosterior:
        """The same posterior with another T_theta."""
        return replace(self, temperature=float(temperature))


def fit_last_k(
    network: nn.Module,
    loader: Iterable[Any],
    k: int,
    prior_precision: float,
    curvature: Literal["diagonal", "full"] = "diagonal",
) -> LastKPosterior:
    """The Laplace posterior of the last k layers of one network; one pass, memory constant in the data.

    loader: batches of images, or tuples that begin with the images.
    """
    if not (np.isfinite(prior_precision) and prior_precision > 0):
        raise InputError(f"prior precision is {prior_precision}, it must be finite and > 0")
    names = last_layers(network, k)
    own = dict(network.named_parameters())
    parameters = sum(own[name].numel() for name in names)
    if parameters > LARGEST:
        raise InputError(f"the last {k} layers have {parameters} parameters, more than {LARGEST}; lower k")
    device = own[names[0]].device
    network.eval()
    total, images_seen = np.zeros((parameters, parameters)), 0
    for batch in loader:
        images = (batch[0] if isinstance(batch, tuple | list) else batch).to(device)
        with torch.no_grad():
            pmf = torch.softmax(network(images).double(), dim=-1).cpu().numpy()
        step = max(1, CHUNK_NUMBERS // (pmf.shape[1] * parameters))
        for start in range(0, len(images), step):
            chunk = slice(start, start + step)
            weighted = _weighted(jacobians(network, names, images[chunk]), pmf[chunk], curvature)
            total += weighted.T @ weighted
        images_seen += len(images)
    if images_seen == 0:
        raise InputError("cannot fit a posterior: the data loader is empty")
    factor = factor_with_prior(total, prior_precision)
    return LastKPosterior(network, names, factor, float(prior_precision), coupled=curvature == "full")


def _weighted(jacobian: np.ndarray, pmf: np.ndarray, curvature: str) -> np.ndarray:
    """Rows whose outer products sum to the curvature of a few images.   [n * classes, parameters]"""
    if curvature == "diagonal":
        rows = np.sqrt(pmf * (1.0 - pmf))[:, :, None] * jacobian
    elif curvature == "full":
        # S = diag(sqrt p) - sqrt(p) p^T gives S^T S = diag p - p p^T, hence J^T Lambda J = (S J)^T (S J)
        root = np.sqrt(pmf)[:, :, None]
        rows = root * (jacobian - np.einsum("nm,nmp->np", pmf, jacobian)[:, None, :])
    else:
        raise InputError(f"curvature is {curvature!r}, expected diagonal or full")
    return rows.reshape(-1, jacobian.shape[-1])
