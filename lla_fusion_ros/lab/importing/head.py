"""A new last layer on the features of a trunk that stays as it is: multinomial regression, exactly solved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax

# Candidates of the L2 penalty, in units of the mean square length of the features.
PENALTIES = tuple(10.0**power for power in (-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, 0))
MOST_DIRECTIONS = 256  # of the features that a head reads: the others tell one place from another
FOLDS = 5
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
    curved there: this takes dozens of steps where the features themselves would take thousands. Of wide
    features it reads the MOST_DIRECTIONS of the largest mean square.
    """

    def __init__(self, features: np.ndarray, label: np.ndarray, classes: int) -> None:
        phi = np.concatenate([features, np.ones((len(features), 1))], axis=1).astype(np.float64)
        square, directions = np.linalg.eigh(phi.T @ phi)  # rising
        self._square = np.maximum(square[-MOST_DIRECTIONS:], 0)
        self._directions = directions[:, -MOST_DIRECTIONS:]
        self._along = phi @ self._directions
        self._own, self._classes = (np.arange(len(label)), label), classes

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

    def several(self, penalty: float, track: np.ndarray, heads: int, seed: int) -> list[FittedHead]:
        """So many heads, each fitted on tracks drawn with replacement; a single one on all of them."""
        first = self.fit(penalty)
        drawn = [bootstrap_weights(track, seed + number) for number in range(heads)]
        return [first] if heads == 1 else [self.fit(penalty, first, weight) for weight in drawn]


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Heads fitted on all views, and for every fold as many that never saw its views.

    Attributes:
        left_out: [folds][heads]
        fold: of each view.       [n]
    """

    heads: list[FittedHead]
    left_out: list[list[FittedHead]]
    fold: np.ndarray


def cross_fit(
    features: np.ndarray,
    label: np.ndarray,
    track: np.ndarray,
    group: np.ndarray,
    classes: int,
    heads: int,
    seed: int,
) -> CrossFit:
    """Heads for views [n, d] of tracks and groups; what those without a fold say of it, heads say of a new
    group: fusers can be fitted on that."""
    fold, penalty = folds_of(group), best_penalty(features, label, group, classes)
    left_out = [
        Regression(features[rows], label[rows], classes).several(penalty, track[rows], heads, seed)
        for rows in (fold != number for number in range(int(fold.max()) + 1))
    ]
    return CrossFit(Regression(features, label, classes).several(penalty, track, heads, seed), left_out, fold)


def best_penalty(features: np.ndarray, label: np.ndarray, group: np.ndarray, classes: int) -> float:
    """The one of the lowest NLL on groups that a head never saw; strong penalties first.  [n, d], [n], [n]"""
    fold = folds_of(group)
    seen = [fold != number for number in range(int(fold.max()) + 1)]
    parts = [Regression(features[rows], label[rows], classes) for rows in seen]
    square_length = float(np.square(features).sum(axis=1).mean())
    found: list[FittedHead | None] = [None] * len(parts)
    least, best = np.inf, 0.0
    for share in sorted(PENALTIES, reverse=True):
        penalty = share * square_length
        found = [part.fit(penalty, head) for part, head in zip(parts, found, strict=True)]
        pmfs = [
            softmax(features[~rows] @ head.weight.T + head.bias)
            for head, rows in zip(found, seen, strict=True)
            if head is not None
        ]
        value = nll(np.concatenate(pmfs), np.concatenate([label[~rows] for rows in seen]))
        if value < least:
            least, best = value, penalty
        elif value > 1.05 * least:  # it only grows from here
            break
    return best


def folds_of(group: np.ndarray, folds: int = FOLDS) -> np.ndarray:
    """The fold of each view: whole groups, the largest first, each into the emptiest fold.  [n] -> [n]"""
    groups, of_view, count = np.unique(group, return_inverse=True, return_counts=True)
    filled, fold = np.zeros(min(folds, len(groups))), np.zeros(len(groups), int)
    for place in np.argsort(-count, kind="stable"):
        fold[place] = filled.argmin()
        filled[fold[place]] += count[place]
    return fold[of_view]


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
