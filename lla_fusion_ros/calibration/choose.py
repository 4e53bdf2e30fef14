"""Choose the default fuser by cross-validation over validation tracks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.calibration.fusers import (
    LENGTHS,
    MeasuredTracks,
    fit_fuser,
    measure_tracks,
    smoothed_losses,
)
from lla_fusion_ros.calibration.trackviews import TrackViews
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.fitting.objective import chance_of_an_error
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

CANDIDATES = (
    "pool",
    "committee",
    "reliable_pool",
    "reliability",
    "ella",
    "ella_mixture",
    "wls_robust",
    "hybrid",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The default and the evidence for it.

    Attributes:
        name: the chosen fuser.
        loss, nll, accuracy: of every candidate, on tracks its values were not fitted on.
        standard_error: of the difference of its loss to the chosen one's, over objects.
    """

    name: str
    loss: dict[str, float]
    nll: dict[str, float]
    accuracy: dict[str, float]
    standard_error: dict[str, float]


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
    """The candidate with the least loss over all regimes and lengths, on objects it was not fitted on.

    The loss is the NLL with the truth at 1 - `chance_of_an_error`, as in the fits: of a hundred tracks none
    may happen to be wrong, and the plain NLL would then prefer whoever is surest. Candidates with an accuracy
    more than `tolerance` below the best are out: no calibration at the price of wrong classes.
    `standard_error` of the result tells how sure the choice is.
    """
    fold = folds_by_object(tracks, folds, seed)
    measured = [
        (
            measure_tracks(posterior, tracks.take(fold != part)),
            measure_tracks(posterior, tracks.take(fold == part)),
        )
        for part in range(folds)
    ]
    wrong = chance_of_an_error(len(np.unique(tracks.source)))
    losses: dict[str, np.ndarray] = {}  # [objects]
    nll: dict[str, float] = {}
    accuracy: dict[str, float] = {}
    for name in candidates:
        if progress is not None:
            progress(name)
        pmf, label, of_object = _held_out(name, posterior, measured, weight_prior)
        losses[name] = _mean_by_object(smoothed_losses(pmf, label, wrong), of_object)
        nll[name] = float(_mean_by_object(smoothed_losses(pmf, label, 0.0), of_object).mean())
        accuracy[name] = float((pmf.argmax(axis=1) == label).mean())
    loss = {name: float(values.mean()) for name, values in losses.items()}
    sound = [name for name in candidates if accuracy[name] >= max(accuracy.values()) - tolerance]
    best = min(sound, key=loss.__getitem__)
    errors = {name: _standard_error(losses[name] - losses[best]) for name in candidates}
    return Choice(best, loss, nll, accuracy, errors)


def _standard_error(difference: np.ndarray) -> float:
    return float(difference.std() / np.sqrt(len(difference)))


def _held_out(
    name: str,
    posterior: EnsemblePosterior,
    folds: Sequence[tuple[MeasuredTracks, MeasuredTracks]],
    weight_prior: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At every length of every track, its object left out of the fit: pmf, label, number of the object."""
    pmfs, labels, sources = [], [], []
    for inside, outside in folds:
        fuser = make_fuser(name, posterior, fit_fuser(name, posterior, inside, LENGTHS, weight_prior))
        for length, pmf in outside.fused(fuser).items():
            pmfs.append(pmf)
            labels.append(outside.labels(length))
            sources.append(outside.tracks.source[outside.tracks.steps >= length])
    _, of_object = np.unique(np.concatenate(sources), return_inverse=True)
    return np.concatenate(pmfs), np.concatenate(labels), of_object


def _mean_by_object(losses: np.ndarray, of_object: np.ndarray) -> np.ndarray:
    return np.bincount(of_object, losses) / np.bincount(of_object)
