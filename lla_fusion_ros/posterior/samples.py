"""Monte Carlo in the space of the parameters (eq. 9), to compare with sampling of the logits.

theta^(k) = theta + delta^(k) with delta^(k) ~ N(0, T_theta A_m^-1); a last layer is linear, so the logits of
any view under sample k are its logits plus delta^(k) phi, and no network runs again. One sample is shared by
all views of a network, whatever the camera or time: that is what makes views correlated. The sampled logits
of all views and networks together are therefore samples of zeta ~ N(zeta, R) (eq. 23).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import Cloud, softmax, square_root


def parameter_deviations(posterior: EnsemblePosterior, samples: int = 64, seed: int = 0) -> np.ndarray:
    """delta^(k) of every last layer, correlated between networks where the posterior says so.

    delta_m = sqrt(T_theta) L_m^-T e with e standard normal; across networks e has the covariance G of
    `EnsemblePosterior.whitened_cross`.   [networks, samples, classes, D]
    """
    networks, classes, size = posterior.networks, posterior.classes, posterior.features
    noise = np.random.default_rng(seed).standard_normal((classes, samples, networks * size))
    if posterior.cross is not None:
        joint = posterior.whitened_cross.transpose(2, 0, 3, 1, 4).reshape(classes, networks * size, -1)
        noise = noise @ square_root(joint).swapaxes(-1, -2)
    noise = noise.reshape(classes, samples, networks, size)
    out = np.empty((networks, samples, classes, size))
    for network, factors in enumerate(np.asarray(posterior.factors, np.float64)):
        for m, factor in enumerate(factors):
            out[network, :, m] = solve_triangular(factor, noise[m, :, network].T, lower=True, trans="T").T
    return np.sqrt(posterior.temperature) * out


def parameter_cloud(logits: np.ndarray, features: np.ndarray, deviations: np.ndarray) -> Cloud:
    """f(x | theta^(k)) of every view under every sample, and p_lc as their mean.

    logits [..., networks, classes], features [..., networks, D] -> points [..., networks, samples, classes]
    """
    networks, samples, classes, size = deviations.shape
    flat = features.reshape(-1, networks, size).swapaxes(0, 1)  # [networks, n, D]
    shifts = np.matmul(flat, deviations.reshape(networks, samples * classes, size).swapaxes(1, 2))
    shifts = shifts.swapaxes(0, 1).reshape(*logits.shape[:-1], samples, classes)
    points = softmax(logits[..., None, :] + shifts)
    return Cloud(points, points.mean(axis=-2))
