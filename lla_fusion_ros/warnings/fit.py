"""Fit the warning model: known tracks and synthetic outliers in, coefficients and thresholds out."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.along import flat_views, running_sums
from lla_fusion_ros.fusion.base import take_rows
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.warnings.alarm import AlarmTable
from lla_fusion_ros.warnings.fit_contradiction import fit_camera, fit_switch
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.logistic import fit_logistic
from lla_fusion_ros.warnings.model import SCORES, FeatureSpace, WarningModel, score_columns
from lla_fusion_ros.warnings.sums import TrackSums

FITTED_LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30)
MIN_VIEWS = 3  # thresholds are for tracks of at least so many views, the default of the setting `min_views`
CAMERA_SPAN = 1.0  # seconds
CHUNK = 128  # tracks at a time, for memory


class Tracks(Protocol):
    """calibration.TrackViews, as far as it is needed here; read only, as that class is frozen."""

    @property
    def logits(self) -> np.ndarray: ...

    @property
    def features(self) -> np.ndarray: ...

    @property
    def camera(self) -> np.ndarray: ...

    @property
    def steps(self) -> np.ndarray: ...

    @property
    def label(self) -> np.ndarray: ...

    @property
    def regime(self) -> np.ndarray: ...

    @property
    def source(self) -> np.ndarray: ...


def fit_warnings(
    posterior: EnsemblePosterior, inside: Tracks, outside: Tracks, seed: int = 0
) -> WarningModel:
    """The warning model of a bundle.

    `inside` are validation tracks of known classes, under all conditions they may be met in; `outside` are
    synthetic outliers (never the held-out classes). Thresholds come from `inside` alone: the false-alarm rate
    is the share of its tracks that ever raise the warning.
    """
    if len(inside.label) < 10 or len(outside.label) < 10:
        raise InputError(
            f"warnings need at least 10 validation tracks and 10 outliers, "
            f"there are {len(inside.label)} and {len(outside.label)}"
        )
    space, origin = fit_space(inside.features, inside.steps, inside.label, inside.source, seed)
    known = _Columns.of(space, posterior, inside, origin)
    strange = _Columns.of(space, posterior, outside, None)
    center, scale = known.values.mean(axis=0), np.maximum(known.values.std(axis=0), 1e-6)
    standard = [np.clip((part.values - center) / scale, -8.0, 8.0) for part in (known, strange)]
    intercept, coefficients = fit_logistic(*standard)
    scores = [intercept + part @ coefficients for part in standard]
    late = known.length >= min(MIN_VIEWS, int(known.length.max()))
    ood = AlarmTable.measure(_largest(scores[0][late], known.track[late], len(inside.label)))
    feature_weight, switch, detected = fit_switch(posterior, space, inside, seed)
    quality = {f"auroc_{name}": _auroc(k, s) for name, k, s in zip(SCORES, *_by_score(standard), strict=True)}
    quality |= {"auroc_combined": _auroc(*scores), "switch_detected_5": detected}
    return WarningModel(
        space=space,
        center=center,
        scale=scale,
        coefficients=coefficients,
        intercept=intercept,
        feature_weight=feature_weight,
        camera_span=CAMERA_SPAN,
        ood=ood,
        switch=switch,
        camera=fit_camera(inside, seed),
        quality=quality,
    )


class _Columns:
    """Scores of tracks after several numbers of views: values [rows, scores], track and length [rows]."""

    def __init__(self, values: np.ndarray, track: np.ndarray, length: np.ndarray) -> None:
        self.values, self.track, self.length = values, track, length

    @classmethod
    def of(
        cls, space: FeatureSpace, posterior: EnsemblePosterior, tracks: Tracks, origin: np.ndarray | None
    ) -> _Columns:
        values, track, length = [], [], []
        for start in range(0, len(tracks.label), CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(tracks.label)))
            for chosen, count, means in _means_along(posterior, tracks, rows):
                own = None if origin is None else origin[None, :] == tracks.source[chosen][:, None]
                values.append(score_columns(space, posterior, means, own)[0])
                track.append(chosen)
                length.append(np.full(len(chosen), count))
        return cls(np.concatenate(values), np.concatenate(track), np.concatenate(length))


def _means_along(
    posterior: EnsemblePosterior, tracks: Tracks, rows: np.ndarray
) -> list[tuple[np.ndarray, int, TrackSums]]:
    """(tracks that are long enough, L, their means over the first L views) for every fitted L."""
    longest = tracks.logits.shape[1]
    views = flat_views(posterior, tracks.logits[rows], tracks.features[rows])
    sums = running_sums(TrackSums.one(views), len(rows), longest)
    out = []
    for length in FITTED_LENGTHS:
        chosen = np.flatnonzero(tracks.steps[rows] >= length)
        if len(chosen):
            out.append((rows[chosen], length, take_rows(sums, chosen * longest + length - 1).means()))
    return out


def _largest(values: np.ndarray, track: np.ndarray, tracks: int) -> np.ndarray:
    """The largest value of each track that has any."""
    largest = np.full(tracks, -np.inf)
    np.maximum.at(largest, track, values)
    return largest[np.isfinite(largest)]


def _by_score(parts: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return list(parts[0].T), list(parts[1].T)


def _auroc(known: np.ndarray, strange: np.ndarray) -> float:
    """Probability that an outlier scores higher than a known track (ties count half)."""
    order = np.sort(known)
    below = np.searchsorted(order, strange, side="left") + np.searchsorted(order, strange, side="right")
    return float(below.mean() / (2 * len(known)))
