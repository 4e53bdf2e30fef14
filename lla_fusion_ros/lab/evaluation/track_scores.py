"""The numbers users read: scores of each track, intervals over tracks, comparisons of fusers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.lab.evaluation.fused import Fused
from lla_fusion_ros.types.metrics import (
    ECE_BINS,
    LOWEST_PROBABILITY,
    ece_of,
    flips,
    frames_to_settle,
    reliability_table,
)

OPPONENT = "pool"  # every fuser is compared with it, pairwise on the same tracks

BASELINES = ("last", "vote", "mean_pmf", "product", "log_odds", "ema")  # what users have today
SHORTEST = (1, 3, 10)  # pooled over all lengths from here on


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often each track is drawn in each resample.   [resamples, tracks]

    One set serves every score of a run, so that differences between fusers are paired. A track that was
    degraded several times is drawn with all its versions: they share the sign and its pictures, so they are
    not independent. Such scores come as [draws * tracks], one draw after the other.
    """

    counts: np.ndarray

    @classmethod
    def draw(cls, tracks: int, resamples: int = 1000, seed: int = 0) -> Resamples:
        rng = np.random.default_rng(seed)
        return cls(rng.multinomial(tracks, np.full(tracks, 1 / tracks), size=resamples).astype(np.float64))

    def per_track(self, values: np.ndarray) -> np.ndarray:
        """The mean over the draws of each track.   [draws * tracks] -> [tracks]"""
        return values.reshape(-1, self.counts.shape[1]).mean(axis=0)

    def means(self, values: np.ndarray) -> np.ndarray:
        """The mean of a score over the tracks of each resample.   [draws * tracks] -> [resamples]"""
        return self.counts @ self.per_track(values) / self.counts.sum(axis=1)

    def ece(self, confidence: np.ndarray, correct: np.ndarray) -> np.ndarray:
        """The usual expected calibration error of each resample.   2 x [draws * tracks] -> [resamples]"""
        bins = np.minimum((confidence * ECE_BINS).astype(int), ECE_BINS - 1)
        gaps = np.zeros((len(confidence), ECE_BINS))
        gaps[np.arange(len(confidence)), bins] = correct - confidence
        of_track = gaps.reshape(-1, self.counts.shape[1], ECE_BINS).mean(axis=0)  # [tracks, bins]
        return np.abs(self.counts @ of_track).sum(axis=1) / self.counts.sum(axis=1)


def ece_if_calibrated(confidence: np.ndarray, tracks: int, trials: int = 200, seed: int = 0) -> list[float]:
    """The ECE that so few tracks show on average when every confidence is exactly right: [least, most].

    Bins of a few tracks are never met exactly, so that a measured ECE below this is no sign of anything. Of a
    track's several draws (confidence [draws * tracks]) the least takes each as right or wrong by itself,
    the most lets one chance decide all of them; the truth lies between.
    """
    rng = np.random.default_rng(seed)
    once = Resamples(np.ones((1, tracks)))
    draws = len(confidence) // tracks

    def shown(chances: Callable[[], np.ndarray]) -> float:
        return float(np.mean([once.ece(confidence, chances() < confidence) for _ in range(trials)]))

    apart = shown(lambda: rng.random(len(confidence)))
    return [apart, apart if draws == 1 else shown(lambda: np.tile(rng.random(tracks), draws))]


def interval(samples: np.ndarray, level: float = 0.95) -> list[float]:
    """The central interval of resampled scores: [low, high]."""
    tail = 50 * (1 - level)
    low, high = np.percentile(samples, [tail, 100 - tail])
    return [float(low), float(high)]


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


def comparisons(
    scores: dict[tuple[str, str, int, int], TrackScores], draws: Resamples
) -> list[dict[str, Any]]:
    """NLL of every fuser divided by `pool`'s and by the best baseline's, per regime and over all regimes."""
    fusers = list(dict.fromkeys(key[0] for key in scores))
    regimes = list(dict.fromkeys(key[1] for key in scores))
    counts = sorted({key[2] for key in scores})
    lengths = sorted({key[3] for key in scores})
    records = []
    for count in counts:
        for regime in (*regimes, "all"):
            used = regimes if regime == "all" else [regime]
            for shortest in SHORTEST:
                cells = [(r, count, length) for r in used for length in lengths if length >= shortest]
                if not cells:
                    continue
                of = {name: [scores[(name, *cell)] for cell in cells] for name in fusers}
                best = _best_baseline(of)
                for name in fusers:
                    record: dict[str, Any] = {"fuser": name, "regime": regime, "C": count, "L_from": shortest}
                    for other in dict.fromkeys(n for n in (OPPONENT, best) if n in of):
                        ratio, limits = nll_ratio(of[name], of[other], draws)
                        key = "pool" if other == OPPONENT else "best_baseline"
                        record |= {f"nll_over_{key}": ratio, f"nll_over_{key}_interval": limits}
                    record["best_baseline"] = best
                    records.append(record)
    return records


def _best_baseline(of: dict[str, list[TrackScores]]) -> str | None:
    """The baseline with the lowest mean NLL on these cells."""
    losses = {name: sum(s.nll.mean() for s in of[name]) for name in BASELINES if name in of}
    return min(losses, key=losses.__getitem__) if losses else None
