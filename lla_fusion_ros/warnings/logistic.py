"""Logistic regression by Newton's method: few columns, no dependence."""

from __future__ import annotations

import numpy as np

RIDGE = 1e-2  # per mean log-loss, on standardised columns


def fit_logistic(
    negative: np.ndarray, positive: np.ndarray, iterations: int = 30
) -> tuple[float, np.ndarray]:
    """Intercept and coefficients that tell positive rows from negative ones; both sides weigh the same.

    [n, columns], [p, columns] -> float, [columns]
    """
    rows = np.concatenate([negative, positive])
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    target = np.repeat([0.0, 1.0], [len(negative), len(positive)])
    weight = np.repeat([0.5 / len(negative), 0.5 / len(positive)], [len(negative), len(positive)])
    ridge = RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    beta = np.zeros(design.shape[1])
    for _ in range(iterations):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
        gradient = design.T @ (weight * (chance - target)) + ridge @ beta
        curvature = (
            (design.T * (weight * chance * (1.0 - chance))) @ design + ridge + 1e-9 * np.eye(len(beta))
        )
        step = np.linalg.solve(curvature, gradient)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    return float(beta[0]), beta[1:]
