"""What warnings are fitted on besides the regimes: conditions, background, outliers, bad pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lla_fusion_ros.lab.calibration.collect import by_track, views_of_crops
from lla_fusion_ros.lab.datasets import REGIMES, CropSet, TrackSet, border_of, cut, outlier_tracks
from lla_fusion_ros.lab.datasets.background import backgrounds
from lla_fusion_ros.lab.datasets.conditions import CONDITIONS, DISTANT, UNREADABLE, under_condition
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews, joined
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.fit import Seen
from lla_fusion_ros.warnings.scores import SETTLED

MOST_TRACKS = 200  # of the validation tracks are put under conditions, evenly picked
MOST_VIEWS = SETTLED  # of each, the first ones: small and far away, where most false alarms are
AT_ONCE = 32  # tracks whose images are in memory
BACKGROUND_FRAMES = 5
BACKGROUND_CONDITIONS = ("as recorded", "dark, JPEG 95")

Classify = Callable[[np.ndarray], Views]


@dataclass(frozen=True, slots=True)
class WarningTracks:
    """`regime` names the condition or the kind of stranger.

    Attributes:
        conditions: known objects under CONDITIONS.
        unreadable: known objects under UNREADABLE.
        distant: known objects under DISTANT.
        strange: background, and synthetic outliers made from known objects.
    """

    conditions: TrackViews
    unreadable: TrackViews
    distant: TrackViews
    strange: TrackViews


def warning_tracks(
    classify: Classify,
    validation: TrackSet,
    crops: CropSet,
    margin: float,
    outliers: int,
    folder: str | Path | None,
    seed: int,
) -> WarningTracks:
    """From validation tracks, their crops with a border, and images below `folder` where one is named."""
    size = crops.size
    known = _thinned(validation)
    background = [
        views_under(classify, tracks, BACKGROUND_CONDITIONS, size, margin, seed)
        for tracks in backgrounds(outliers, BACKGROUND_FRAMES, seed, folder)
    ]
    signlike = views_of_crops(
        classify, outlier_tracks(crops, outliers, seed), seed=seed + 1, longest=MOST_VIEWS
    )
    return WarningTracks(
        views_under(classify, known, CONDITIONS, size, margin, seed),
        views_under(classify, known, UNREADABLE, size, margin, seed),
        views_under(classify, known, DISTANT, size, margin, seed),
        # Groups weigh the same: every condition of the background as much as all sign-like outliers, which
        # alone would teach that any odd picture of a sign is unknown.
        joined([*background, replace(signlike, regime=np.full(len(signlike), "sign-like"))]),
    )


def seen_by(
    classify: Classify,
    posterior: EnsemblePosterior,
    train: TrackSet,
    unseen: TrackSet,
    views: TrackViews,
    size: int,
    margin: float,
    outliers: int,
    folder: str | Path | None,
    seed: int,
) -> Seen:
    """What networks say of all that warnings are fitted on; `views` are those of the unseen tracks."""
    crops = cut(unseen, size, margin, border_of(size))
    met = warning_tracks(classify, unseen, crops, margin, outliers, folder, seed)
    conditions, unreadable, distant = (
        replace(tracks, source=tracks.source + views.source.min())
        for tracks in (met.conditions, met.unreadable, met.distant)
    )
    known = known_views(classify, train, size, margin, seed)
    return Seen(posterior, views, met.strange, known, conditions, unreadable, distant)


def known_views(classify: Classify, train: TrackSet, size: int, margin: float, seed: int) -> TrackViews:
    """Known objects: the training tracks under all regimes, every sixth frame."""
    crops = cut(train, size, margin, border_of(size))
    return views_of_crops(classify, crops.take(np.flatnonzero(crops.frame % 6 == 0)), seed=seed + 3)


def views_under(
    classify: Classify, tracks: TrackSet, conditions: Iterable[str], size: int, margin: float, seed: int
) -> TrackViews:
    """What the networks say of all tracks under each condition; `source` numbers the tracks."""
    parts = []
    for condition in conditions:
        for start in range(0, len(tracks.tracks), AT_ONCE):
            some = replace(tracks, tracks=tracks.tracks[start : start + AT_ONCE])
            crops = cut(under_condition(some, condition, seed + start), size, margin)
            views = by_track(classify(crops.images), crops, np.ones(len(crops), bool), condition)
            parts.append(replace(views, source=views.source + start))
    return joined(parts)


def warning_crops(validation: TrackSet, outliers: int) -> int:
    """How many crops `warning_tracks` classifies, about."""
    views = sum(len(track.frames) for track in _thinned(validation).tracks)
    per_track = views / max(min(len(validation.tracks), MOST_TRACKS), 1)
    background = 2 * outliers * BACKGROUND_FRAMES * len(BACKGROUND_CONDITIONS)
    conditions = len(CONDITIONS) + len(UNREADABLE) + len(DISTANT)
    return round(views * conditions + background + len(REGIMES) * outliers * per_track)


def _thinned(tracks: TrackSet) -> TrackSet:
    step = max(1, -(-len(tracks.tracks) // MOST_TRACKS))
    chosen = [replace(track, frames=track.frames[:MOST_VIEWS]) for track in tracks.tracks[::step]]
    return replace(tracks, tracks=tuple(chosen))
