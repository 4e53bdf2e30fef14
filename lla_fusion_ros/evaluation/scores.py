"""From predictions to the numbers users read, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.evaluation.bootstrap import Resamples, ece_if_calibrated, interval
from lla_fusion_ros.evaluation.fused import Fused
from lla_fusion_ros.metrics import LOWEST_PROBABILITY, ece_of, flips, frames_to_settle, reliability_table

OPPONENT = "pool"  # every fuser is compared with it, pairwise on the same tracks


@dataclass(frozen=True, slots=True)
class TrackScores:
    """One fuser at one length, a number per track and draw of its degradation.   each [draws * tracks]"""

    correct: np.ndarray
    confidence: np.ndarray
    nll: np.ndarray
    brier: np.ndarray
    flips: np.ndarray
    settle: np.ndarray


def track_scores(fused: Fused, label: np.ndarray, length: int) -> TrackScores:
    """`settle`: the frame from which the right class is shown for good; one past the end if never."""
    pmf = fused.after(length)
    rows = np.arange(len(label))
    target = np.zeros_like(pmf)
    target[rows, label] = 1.0
    shown = fused.shown(length)
    return TrackScores(
        correct=(pmf.argmax(axis=1) == label).astype(float),
        confidence=pmf.max(axis=1),
        nll=-np.log(np.maximum(pmf[rows, label], LOWEST_PROBABILITY)),
        brier=((pmf - target) ** 2).sum(axis=1),
        flips=np.array([float(flips(classes)) for classes in shown]),
        settle=np.array([_settled(classes, y) for classes, y in zip(shown, label, strict=True)]),
    )


def _settled(shown: np.ndarray, label: int) -> float:
    frame = frames_to_settle(shown, int(label))
    return float(len(shown) + 1 if frame is None else frame)


def joined_scores(parts: Sequence[TrackScores]) -> TrackScores:
    """The scores of several groups of tracks, one after the other."""
    return TrackScores(
        **{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(TrackScores)}
    )


def result_record(scores: TrackScores, opponent: TrackScores | None, draws: Resamples) -> dict[str, Any]:
    """The scores of one fuser, regime, L and C, with 95% intervals over tracks."""
    record: dict[str, Any] = {}
    for name, values in (
        ("accuracy", scores.correct),
        ("nll", scores.nll),
        ("brier", scores.brier),
        ("flips", scores.flips),
        ("frames_to_settle", scores.settle),
    ):
        record[name] = float(values.mean())
        record[f"{name}_interval"] = interval(draws.means(values))
    record["ece"] = ece_of(reliability_table(scores.confidence, scores.correct))
    record["ece_if_calibrated"] = ece_if_calibrated(scores.confidence, draws.counts.shape[1])
    record["ece_interval"] = interval(draws.ece(scores.confidence, scores.correct))
    if opponent is not None:
        record[f"nll_minus_{OPPONENT}"] = float((scores.nll - opponent.nll).mean())
        record[f"nll_minus_{OPPONENT}_interval"] = interval(draws.means(scores.nll - opponent.nll))
        record[f"accuracy_minus_{OPPONENT}"] = float((scores.correct - opponent.correct).mean())
        record[f"accuracy_minus_{OPPONENT}_interval"] = interval(
            draws.means(scores.correct - opponent.correct)
        )
    return record


def nll_ratio(
    own: Sequence[TrackScores], other: Sequence[TrackScores], draws: Resamples
) -> tuple[float, list[float]]:
    """NLL over several regimes and lengths divided by another fuser's; tracks are resampled as a whole."""
    mine = np.mean([draws.per_track(scores.nll) for scores in own], axis=0)
    theirs = np.mean([draws.per_track(scores.nll) for scores in other], axis=0)
    return float(mine.mean() / theirs.mean()), interval(draws.means(mine) / draws.means(theirs))
