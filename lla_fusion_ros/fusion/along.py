"""The pmf after every number of views of many tracks at once: what calibration and evaluation ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views


def views_of(posterior: EnsemblePosterior, tracks: TrackViews) -> MeasuredViews:
    """All views of many tracks as one batch, padding included.

    Keep it, so that entropies and variances are computed once.  [tracks, steps, ...] -> [tracks * steps, ...]
    """
    return flat_views(posterior, tracks.logits, tracks.features, tracks.quality, tracks.size)


def flat_views(
    posterior: EnsemblePosterior,
    logits: np.ndarray,
    features: np.ndarray,
    quality: np.ndarray | None = None,
    size: np.ndarray | None = None,
) -> MeasuredViews:
    """The same from arrays."""
    arrays = logits, features, quality, size
    flat = [None if a is None else a.reshape(-1, *a.shape[2:]) for a in arrays]
    return measured(Views(*flat), posterior)  # type: ignore[arg-type]


def pmf_along(fuser: Fuser, views: Views, steps: int, lengths: Sequence[int] | None = None) -> np.ndarray:
    """The fused pmf after 1 ... `steps` views of each track, or only after the numbers in `lengths`.

    A sum fuser costs one contribution per view and one cumulative sum; the others run step by step.
    Flat views [tracks * steps, ...], each track's in order -> [tracks, lengths, classes]
    """
    if steps < 1 or len(views) % steps:
        raise InputError(f"{len(views)} views cannot be tracks of {steps} steps each")
    tracks = len(views) // steps
    after = list(range(1, steps + 1)) if lengths is None else list(lengths)
    if isinstance(fuser, SumFuser):
        sums = running_sums(fuser.contribution(fuser.measured(views)), tracks, steps, after)
        return fuser.predict(sums).reshape(tracks, len(after), -1)
    state = fuser.initial(tracks)
    pmfs = {}
    for step in range(max(after)):
        state = fuser.update(state, views.take(slice(step, None, steps)))
        if step + 1 in after:
            pmfs[step + 1] = fuser.predict(state)
    return np.stack([pmfs[length] for length in after], axis=1)


def running_sums(state: Any, tracks: int, steps: int, lengths: Sequence[int]) -> Any:
    """Contributions of flat views to the states after so many views: cumulative sums.

    [tracks * steps, ...] -> [tracks * lengths, ...]
    """
    places = np.array(lengths) - 1

    def sums(array: np.ndarray) -> np.ndarray:
        along = np.cumsum(array.reshape(tracks, steps, *array.shape[1:]), axis=1)
        return along[:, places].reshape(-1, *array.shape[1:])

    return type(state)(**{f.name: sums(getattr(state, f.name)) for f in fields(state)})
