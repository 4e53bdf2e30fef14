"""Choose the default fuser by cross-validation over validation tracks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.calibration.fusers import LENGTHS, fit_fuser, measure_tracks
from lla_fusion_ros.calibration.trackviews import TrackViews
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

CANDIDATES = ("pool", "wls_robust", "hybrid", "reliability", "reliable_pool", "ella", "ella_mixture")


@dataclass(frozen=True, slots=True)
class Choice:
    """The default and the evidence for it.

    Attributes:
        name: the chosen fuser.
        nll, accuracy: of every candidate, on tracks its values were not fitted on.
    """

    name: str
    nll: dict[str, float]
    accuracy: dict[str, float]


def folds_by_object(tracks: TrackViews, folds: int, seed: int) -> np.ndarray:
    """The fold of each track; an object's tracks under all regimes fall into the same one.  [tracks]"""
    objects, of_track = np.unique(tracks.source, return_inverse=True)
    return np.random.default_rng(seed).permutation(len(objects))[of_track] % folds


def choose_default(
    posterior: EnsemblePosterior,
    tracks: TrackViews,
    weight_prior: float | None = None,
    candidates: Sequence[str] = CANDIDATES,
    folds: int = 3,
    seed: int = 0,
    tolerance: float = 0.003,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """The candidate with the lowest NLL over all regimes and lengths, among those whose accuracy is within
    `tolerance` of the best: a fuser must not buy calibration with wrong classes.
    """
    fold = folds_by_object(tracks, folds, seed)
    measured = [
        (
            measure_tracks(posterior, tracks.take(fold != part)),
            measure_tracks(posterior, tracks.take(fold == part)),
        )
        for part in range(folds)
    ]
    nll: dict[str, float] = {}
    accuracy: dict[str, float] = {}
    for name in candidates:
        if progress is not None:
            progress(name)
        losses, hits = [], []
        for inside, outside in measured:
            fuser = make_fuser(name, posterior, fit_fuser(name, posterior, inside, LENGTHS, weight_prior))
            for length, pmf in outside.fused(fuser).items():
                label = outside.labels(length)
                losses.append(-np.log(np.maximum(pmf[np.arange(len(label)), label], 1e-12)))
                hits.append(pmf.argmax(axis=1) == label)
        nll[name] = float(np.concatenate(losses).mean())
        accuracy[name] = float(np.concatenate(hits).mean())
    sound = [name for name in candidates if accuracy[name] >= max(accuracy.values()) - tolerance]
    return Choice(min(sound, key=nll.__getitem__), nll, accuracy)
