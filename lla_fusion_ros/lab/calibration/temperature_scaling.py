"""Temperature scaling (eq. 36): softmax(g / T) with the one T that fits validation data best."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax

LOG_BOUNDS = (-3.0, 3.0)  # T between 0.05 and 20: beyond, the network is broken, not miscalibrated


def temperature_scaled(logits: np.ndarray, temperature: float) -> np.ndarray:
    """p^T of eq. 36.   [..., classes] -> [..., classes]"""
    return softmax(logits / temperature)


def fit_temperature(logits: np.ndarray, label: np.ndarray) -> float:
    """The T of one network that minimises the NLL of softmax(logits / T).   [n, classes], [n]"""
    logits = np.asarray(logits, np.float64)
    found = minimize_scalar(
        lambda log_t: nll(temperature_scaled(logits, np.exp(log_t)), label),
        bounds=LOG_BOUNDS,
        method="bounded",
    )
    return float(np.exp(found.x))
