"""Intervals by resampling tracks: frames of one track are not independent, tracks are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.metrics import ECE_BINS


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often each track is drawn in each resample.   [resamples, tracks]

    One set serves every score of a run, so that differences between fusers are paired.
    """

    counts: np.ndarray

    @classmethod
    def draw(cls, tracks: int, resamples: int = 1000, seed: int = 0) -> Resamples:
        rng = np.random.default_rng(seed)
        return cls(rng.multinomial(tracks, np.full(tracks, 1 / tracks), size=resamples).astype(np.float64))

    def means(self, values: np.ndarray) -> np.ndarray:
        """The mean of a score over the tracks of each resample.   [tracks] -> [resamples]"""
        return self.counts @ values / self.counts.sum(axis=1)

    def ece(self, confidence: np.ndarray, correct: np.ndarray) -> np.ndarray:
        """The usual expected calibration error of each resample.   2 x [tracks] -> [resamples]"""
        bins = np.minimum((confidence * ECE_BINS).astype(int), ECE_BINS - 1)
        gaps = np.zeros((len(confidence), ECE_BINS))
        gaps[np.arange(len(confidence)), bins] = correct - confidence
        return np.abs(self.counts @ gaps).sum(axis=1) / self.counts.sum(axis=1)


def ece_if_calibrated(confidence: np.ndarray, draws: int = 200, seed: int = 0) -> float:
    """The ECE that so few tracks show on average when every confidence is exactly right.   [tracks]

    Bins of a few tracks are never met exactly, so that a measured ECE below this is no sign of anything.
    """
    rng = np.random.default_rng(seed)
    once = Resamples(np.ones((1, len(confidence))))
    return float(
        np.mean([once.ece(confidence, rng.random(len(confidence)) < confidence) for _ in range(draws)])
    )


def interval(samples: np.ndarray, level: float = 0.95) -> list[float]:
    """The central interval of resampled scores: [low, high]."""
    tail = 50 * (1 - level)
    low, high = np.percentile(samples, [tail, 100 - tail])
    return [float(low), float(high)]
