"""Scores of predictions: accuracy and calibration, detection, stability over a track, intervals.

Labels are class indices [n]; pmf is [n, classes]. Detection scores take a number per item and whether the
item is positive; which side is positive is the caller's choice (the paper detects *in*-distribution samples,
eq. 35; the warnings of this package detect outliers). It stands here because both `report` and `lab` score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from lla_fusion_ros.types.errors import InputError

ECE_BINS = 15
LOWEST_PROBABILITY = 1e-12  # a probability of zero for the truth would make the mean NLL infinite


def accuracy(pmf: np.ndarray, label: np.ndarray) -> float:
    """Share of items whose most probable class is the true one."""
    _check(pmf, label)
    return float((pmf.argmax(axis=1) == label).mean())


def nll(pmf: np.ndarray, label: np.ndarray) -> float:
    """Mean negative log-likelihood in nats: eq. 14, its sign turned, per item."""
    _check(pmf, label)
    return float(-np.log(np.maximum(pmf[np.arange(len(label)), label], LOWEST_PROBABILITY)).mean())


def brier(pmf: np.ndarray, label: np.ndarray) -> float:
    """Mean over items of the squared distance to the truth, summed over classes; 0 to 2."""
    _check(pmf, label)
    return float(((np.eye(pmf.shape[1])[label] - pmf) ** 2).sum(axis=1).mean())


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability diagram: a row per bin of confidence, NaN where the bin is empty.   each [bins]"""

    count: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray


def reliability(pmf: np.ndarray, label: np.ndarray, bins: int = ECE_BINS) -> Reliability:
    """acc(B_j) and conf(B_j) over equal bins of the largest probability, the last bin closed."""
    _check(pmf, label)
    return reliability_table(pmf.max(axis=1), pmf.argmax(axis=1) == label, bins)


def reliability_table(confidence: np.ndarray, correct: np.ndarray, bins: int = ECE_BINS) -> Reliability:
    """The same from the largest probability of each item and whether its class was right.   both [n]"""
    if bins < 1:
        raise InputError(f"a reliability diagram needs at least 1 bin, not {bins}")
    bin_of = np.clip((confidence * bins).astype(int), 0, bins - 1)
    count = np.bincount(bin_of, minlength=bins).astype(float)
    hits = np.bincount(bin_of, weights=correct, minlength=bins)
    held = np.bincount(bin_of, weights=confidence, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(count, held / count, hits / count)


def ece(pmf: np.ndarray, label: np.ndarray, bins: int = ECE_BINS) -> float:
    """The usual expected calibration error: sum_j |B_j|/N |acc(B_j) - conf(B_j)|."""
    return ece_of(reliability(pmf, label, bins))


def ece_of(table: Reliability) -> float:
    """The usual expected calibration error of a reliability diagram."""
    gaps = np.nan_to_num(np.abs(table.accuracy - table.confidence))
    return float((table.count * gaps).sum() / table.count.sum())


def ece_paper(pmf: np.ndarray, label: np.ndarray, bins: int = ECE_BINS) -> float:
    """The paper's, as printed: sum_j 1/|B_j| |acc(B_j) - conf(B_j)| over the bins that hold anything."""
    table = reliability(pmf, label, bins)
    filled = table.count > 0
    return float((np.abs(table.accuracy - table.confidence)[filled] / table.count[filled]).sum())


def auroc(score: np.ndarray, positive: np.ndarray) -> float:
    """P(a positive scores above a negative), ties half: the area under the ROC curve."""
    positive = _check_detection(score, positive)
    ranks = rankdata(score)
    ones, zeros = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def roc_curve(score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P_FA, P_D and thresholds (detect where score >= threshold), from "detect nothing" on."""
    detected, false, thresholds = _counts(score, positive)
    return np.r_[0, false] / false[-1], np.r_[0, detected] / detected[-1], np.r_[np.inf, thresholds]


def pr_curve(score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and thresholds, from the highest threshold down."""
    detected, false, thresholds = _counts(score, positive)
    return detected / (detected + false), detected / detected[-1], thresholds


def aupr(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the precision-recall curve as average precision: sum of precision times gain in recall."""
    precision, recall, _ = pr_curve(score, positive)
    return float((precision * np.diff(recall, prepend=0.0)).sum())


def fpr95(score: np.ndarray, positive: np.ndarray, detection: float = 0.95) -> float:
    """The share of false alarms at the highest threshold that detects 95% of the positives."""
    false_alarm, detected, _ = roc_curve(score, positive)
    return float(false_alarm[np.argmax(detected >= detection - 1e-12)])


def flips(shown: np.ndarray) -> np.ndarray:
    """How often the shown class changes from one frame to the next.   [..., frames] -> [...] int"""
    return (np.diff(shown, axis=-1) != 0).sum(axis=-1)


def frames_to_settle(shown: np.ndarray, label: int) -> int | None:
    """Frames until the right class is shown and stays, counted from 1; None where it does not.  [frames]"""
    wrong = np.flatnonzero(np.asarray(shown) != label)
    settled = int(wrong[-1]) + 2 if len(wrong) else 1
    return settled if settled <= len(shown) else None


def bootstrap_interval(
    *arrays: np.ndarray,
    statistic: Callable[..., Any] = np.mean,
    track: np.ndarray | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The central interval of a score when tracks are drawn again with replacement.

    Args:
        arrays: what the statistic takes, first axis alike; `bootstrap_interval(pmf, label, statistic=nll)`.
        track: the track of each row; rows of one track are drawn together. By default a row is a track.
    """
    if not arrays or len(arrays[0]) == 0 or len({len(array) for array in arrays}) != 1:
        raise InputError(f"cannot bootstrap arrays of lengths {[len(array) for array in arrays]}")
    rng = np.random.default_rng(seed)
    rows_of = _rows_by_track(np.arange(len(arrays[0])) if track is None else np.asarray(track))
    values = []
    for _ in range(resamples):
        drawn = rng.integers(len(rows_of), size=len(rows_of))
        rows = drawn if track is None else np.concatenate([rows_of[index] for index in drawn])
        values.append(statistic(*(array[rows] for array in arrays)))
    low, high = np.quantile(np.asarray(values, float), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _rows_by_track(track: np.ndarray) -> list[np.ndarray]:
    _, index = np.unique(track, return_inverse=True)
    return np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])


def _counts(score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positives and negatives at or above each distinct score, highest first, and those scores."""
    positive = _check_detection(score, positive)
    order = np.argsort(-np.asarray(score), kind="stable")
    ordered = np.asarray(score)[order]
    last = np.r_[np.flatnonzero(np.diff(ordered)), len(ordered) - 1]  # the last item of each tie
    detected = np.cumsum(positive[order])[last]
    return detected, last + 1 - detected, ordered[last]


def _check(pmf: np.ndarray, label: np.ndarray) -> None:
    if pmf.ndim != 2 or len(pmf) == 0 or len(pmf) != len(label):
        raise InputError(f"cannot score a pmf of shape {pmf.shape} against {len(label)} labels")
    if not np.isfinite(pmf).all():
        raise InputError("cannot score a pmf that contains NaN or infinity")
    if np.min(label) < 0 or np.max(label) >= pmf.shape[1]:
        raise InputError(
            f"labels range from {np.min(label)} to {np.max(label)}, classes from 0 to {pmf.shape[1] - 1}"
        )


def _check_detection(score: np.ndarray, positive: np.ndarray) -> np.ndarray:
    positive = np.asarray(positive, bool)
    if len(score) != len(positive):
        raise InputError(f"{len(score)} scores do not fit {len(positive)} marks of what is positive")
    if not np.isfinite(score).all():
        raise InputError("detection scores contain NaN or infinity")
    if positive.all() or not positive.any():
        raise InputError("detection needs positives and negatives; there is only one kind")
    return positive
