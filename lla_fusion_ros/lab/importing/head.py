"""A new last layer on the features of a trunk that stays as it is: multinomial regression, exactly solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax

# Candidates of the L2 penalty, per class and in units of the features' mean square.
PENALTIES = tuple(10.0 ** (power / 2) for power in range(-4, 7))
MOST_FEATURES = 128  # of the posterior
POSTERIOR_BYTES = 64 * 1024**2  # of its blocks in double precision, all networks and classes together


@dataclass(frozen=True, slots=True)
class FittedHead:
    """weight [classes, d], bias [classes]; the penalty is the precision of the posterior's prior."""

    weight: np.ndarray
    bias: np.ndarray
    penalty: float


def fit_head(
    features: np.ndarray,
    label: np.ndarray,
    classes: int,
    penalty: float,
    start: FittedHead | None = None,
    weight: np.ndarray | None = None,
) -> FittedHead:
    """The minimum of sum_n w_n (-ln p_n) + penalty / 2 |W|^2, which is one and found to 1e-5 of its gradient.

    features [n, d], label [n], weight [n]
    """
    count, width = features.shape
    phi = np.concatenate([features, np.ones((count, 1))], axis=1).astype(np.float64)
    rows = np.ones(count) if weight is None else weight
    begin = np.zeros((classes, width + 1))
    if start is not None:
        begin = np.concatenate([start.weight, start.bias[:, None]], axis=1)
    decay = np.full(width + 1, penalty)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(classes, width + 1)
        pmf = softmax(phi @ theta.T)
        chosen = pmf[np.arange(count), label]
        value = -(rows * np.log(np.maximum(chosen, 1e-300))).sum() + 0.5 * (decay * theta**2).sum()
        pmf[np.arange(count), label] -= 1
        return value, ((pmf * rows[:, None]).T @ phi + decay * theta).ravel()

    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS)
    theta = found.x.reshape(classes, width + 1)
    return FittedHead(theta[:, :-1], theta[:, -1], penalty)


_OPTIONS = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-3, "ftol": 1e-10, "maxcor": 30}


def choose_penalty(
    training: tuple[np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray],
    classes: int,
    penalties: Sequence[float] = PENALTIES,
) -> FittedHead:
    """The head whose penalty gives the lowest NLL on validation views; strong ones first, each from the last."""
    features, label = training
    square = float(np.square(features).mean())
    best: tuple[float, FittedHead] | None = None
    head: FittedHead | None = None
    for penalty in sorted(penalties, reverse=True):
        head = fit_head(features, label, classes, penalty * square * features.shape[1], head)
        value = nll(softmax(validation[0] @ head.weight.T + head.bias), validation[1])
        if best is None or value < best[0]:
            best = value, head
        elif value > 1.05 * best[0]:  # it only grows from here
            break
    assert best is not None
    return best[1]


def bootstrap_weights(track: np.ndarray, seed: int) -> np.ndarray:
    """How often each view is drawn when whole tracks are drawn with replacement.  [n] -> [n]"""
    tracks, of_view = np.unique(track, return_inverse=True)
    drawn = np.random.default_rng(seed).multinomial(len(tracks), np.full(len(tracks), 1 / len(tracks)))
    return drawn[of_view].astype(float)


def seen_width(width: int, networks: int, classes: int) -> int:
    """How many directions of the features the posterior sees: all, or as many as POSTERIOR_BYTES hold."""
    fits = int(np.sqrt(POSTERIOR_BYTES / 8 / networks / classes)) - 2
    most = max(min(MOST_FEATURES, fits), 1)
    return width if width <= most else most


def leading_directions(features: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal directions of the largest mean square.  [n, d] -> [d, count] float32"""
    moments = features.T.astype(np.float64) @ features
    _, vectors = np.linalg.eigh(moments)  # eigenvalues rise
    return np.ascontiguousarray(vectors[:, ::-1][:, :count], np.float32)
