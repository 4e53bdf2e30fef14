"""A new last layer on the features of a trunk that stays as it is: multinomial regression, exactly solved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax

# Candidates of the L2 penalty, in units of the mean square length of the features.
PENALTIES = tuple(10.0**power for power in (-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, 0))
MOST_FEATURES = 128  # of the posterior
POSTERIOR_BYTES = 64 * 1024**2  # of its blocks in double precision, all networks and classes together


@dataclass(frozen=True, slots=True)
class FittedHead:
    """weight [classes, d], bias [classes]; the penalty is the precision of the posterior's prior."""

    weight: np.ndarray
    bias: np.ndarray
    penalty: float


class Regression:
    """Heads for features [n, d] of views with labels [n].

    A head is searched for along the principal directions of the features, each in units of what the loss is
    curved there: this takes dozens of steps where the features themselves would take thousands.
    """

    def __init__(self, features: np.ndarray, label: np.ndarray, classes: int) -> None:
        phi = np.concatenate([features, np.ones((len(features), 1))], axis=1).astype(np.float64)
        square, self._directions = np.linalg.eigh(phi.T @ phi)
        self._square = np.maximum(square, 0)
        self._along = phi @ self._directions
        self._own, self._classes = (np.arange(len(label)), label), classes
        self.square_length = float(np.square(features).sum(axis=1).mean())

    def fit(
        self, penalty: float, start: FittedHead | None = None, weight: np.ndarray | None = None
    ) -> FittedHead:
        """The one minimum of sum_n w_n (-ln p_n) + penalty / 2 |theta|^2, the bias being part of theta."""
        unit = 1 / np.sqrt(self._square / (2 * self._classes) + penalty)  # [d + 1]
        along, decay = self._along * unit, penalty * unit**2
        count, width = along.shape
        rows = np.ones(count) if weight is None else weight
        begin = np.zeros((self._classes, width))
        if start is not None:
            begin = np.concatenate([start.weight, start.bias[:, None]], axis=1) @ self._directions / unit

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            theta = flat.reshape(begin.shape)
            pmf = softmax(along @ theta.T)
            said = np.log(np.maximum(pmf[self._own], 1e-300))
            pmf[self._own] -= 1
            gradient = (pmf * rows[:, None]).T @ along + decay * theta
            return 0.5 * (decay * theta**2).sum() - rows @ said, gradient.ravel()

        options = {"maxiter": 500, "gtol": 1e-5 * np.sqrt(count), "ftol": 1e-12}
        found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
        theta = (found.x.reshape(begin.shape) * unit) @ self._directions.T
        return FittedHead(theta[:, :-1], theta[:, -1], penalty)

    def best(self, features: np.ndarray, label: np.ndarray) -> FittedHead:
        """The head whose penalty gives the lowest NLL on other views; strong penalties first."""
        best: tuple[float, FittedHead] | None = None
        head: FittedHead | None = None
        for penalty in sorted(PENALTIES, reverse=True):
            head = self.fit(penalty * self.square_length, head)
            value = nll(softmax(features @ head.weight.T + head.bias), label)
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
