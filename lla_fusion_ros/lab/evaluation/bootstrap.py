"""Intervals by resampling tracks: frames of one track are not independent, tracks are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.types.metrics import ECE_BINS


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
