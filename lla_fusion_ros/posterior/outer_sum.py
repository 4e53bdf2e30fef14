"""The sum that every curvature of a last layer is made of."""

from __future__ import annotations

import numpy as np


def outer_sum(weights: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """sum_n w_kn phi_n psi_n^T for several weights k.  [n, k], [n, D], [n, E] -> [k, D, E]"""
    # one weight after another: all products at once would need k times the memory
    return np.stack([(left * weight[:, None]).T @ right for weight in weights.T])
