"""The timeseries-aware uncertainty wrapper (Gross, Klaes, Joeckel, Gerber 2023), as a baseline for bounds.

The class is the majority vote over the frames of a track. A decision tree over features of the track so far
puts a prediction into a leaf; the error bound is the Clopper-Pearson limit of the leaf. The tree is grown on
half of the calibration objects and bounded on the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.reliance.statements import clopper_pearson, error_share

DEPTH, FEWEST, CUTS = 4, 20, 12  # of the tree; objects of a leaf; values tried for each feature


@dataclass(frozen=True, slots=True)
class Leaf:
    bound: float


@dataclass(frozen=True, slots=True)
class Branch:
    feature: int
    value: float
    low: Leaf | Branch
    high: Leaf | Branch


def wrapped(pmf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Majority vote after every frame, and the features of the wrapper.

    They are: certainty of the newest frame, share of frames that agree with the vote, frames so far, number
    of different classes, summed certainty of the agreeing frames, mean certainty.
    pmf of single frames [tracks, steps, classes] -> [tracks, steps] int, [tracks, steps, 6]
    """
    top, sure = pmf.argmax(axis=2), pmf.max(axis=2)
    said = np.eye(pmf.shape[2], dtype=np.float32)[top]
    votes, certainty = said.cumsum(axis=1), (said * sure[..., None]).cumsum(axis=1)
    vote = (votes + 1e-3 * certainty).argmax(axis=2)  # of equal votes the surer one
    length = np.broadcast_to(np.arange(1, pmf.shape[1] + 1), top.shape)
    chosen = vote[..., None]
    agreeing = np.take_along_axis(votes, chosen, axis=2)[..., 0]
    summed = np.take_along_axis(certainty, chosen, axis=2)[..., 0]
    parts = [sure, agreeing / length, length, (votes > 0).sum(axis=2), summed, sure.cumsum(axis=1) / length]
    return vote, np.stack(parts, axis=2).astype(np.float64)


def grow(features: np.ndarray, wrong: np.ndarray, source: np.ndarray, seed: int = 0) -> Leaf | Branch:
    """The tree with its bounds.  features [n, k], wrong [n] bool, source [n]: the object of each"""
    objects = np.random.default_rng(seed).permutation(np.unique(source))
    fitted = np.isin(source, objects[: len(objects) // 2])
    return _grow(features, wrong, source, fitted, DEPTH)


def bounds_of(tree: Leaf | Branch, features: np.ndarray) -> np.ndarray:
    """[n, k] -> [n]"""
    if isinstance(tree, Leaf):
        return np.full(len(features), tree.bound)
    high = features[:, tree.feature] > tree.value
    found = np.empty(len(features))
    found[~high], found[high] = bounds_of(tree.low, features[~high]), bounds_of(tree.high, features[high])
    return found


def _grow(
    features: np.ndarray, wrong: np.ndarray, source: np.ndarray, fitted: np.ndarray, depth: int
) -> Leaf | Branch:
    best: tuple[float, int, float] | None = None
    if depth and 0 < wrong[fitted].mean() < 1:
        for feature in range(features.shape[1]):
            column = features[fitted, feature]
            for value in np.unique(np.quantile(column, np.linspace(0, 1, CUTS + 2)[1:-1])):
                impurity = _impurity(features, wrong, source, fitted, feature, float(value))
                if impurity is not None and (best is None or impurity < best[0]):
                    best = impurity, feature, float(value)
    if best is None or best[0] >= _gini(wrong[fitted]) - 1e-6:
        return Leaf(clopper_pearson(*error_share(wrong[~fitted], source[~fitted])))
    _, feature, value = best
    high = features[:, feature] > value
    low, rest = (_grow(features[s], wrong[s], source[s], fitted[s], depth - 1) for s in (~high, high))
    return Branch(feature, value, low, rest)


def _impurity(
    features: np.ndarray,
    wrong: np.ndarray,
    source: np.ndarray,
    fitted: np.ndarray,
    feature: int,
    value: float,
) -> float | None:
    """Mean Gini impurity of the two sides; None where one has too few objects to fit or to bound."""
    high = features[:, feature] > value
    for side in (high, ~high):
        for part in (fitted, ~fitted):
            if len(np.unique(source[side & part])) < FEWEST:
                return None
    sides = wrong[fitted & high], wrong[fitted & ~high]
    return float(sum(len(side) * _gini(side) for side in sides) / fitted.sum())


def _gini(wrong: np.ndarray) -> float:
    share = float(wrong.mean())
    return 2 * share * (1 - share)
