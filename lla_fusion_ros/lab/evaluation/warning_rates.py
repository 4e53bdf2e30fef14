"""How often tracks are called unknown, or cannot be told, under conditions: as a vehicle would see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.lab.calibration.warning_tracks import views_under
from lla_fusion_ros.lab.datasets import TrackSet
from lla_fusion_ros.lab.datasets.background import background_tracks
from lla_fusion_ros.lab.datasets.conditions import AS_RECORDED, CONDITIONS, DISTANT, UNREADABLE
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import CANNOT_TELL, OUT_OF_DISTRIBUTION, REASONS

FRAME = 100_000_000  # nanoseconds
SURE = 0.9
FEWEST_VIEWS = 3  # warnings wait for so many; shorter tracks are left out
BACKGROUND_TRACKS = 400
SEED = 7000  # added: no seed that warnings are fitted with
LONGEST = 10  # views of a track, the first ones
CHUNK = 50  # tracks at a time

Classify = Callable[[np.ndarray], Views]


def warning_rates(
    bundle: Bundle,
    classify: Classify,
    known: TrackSet,
    strange: TrackSet,
    folder: str | None,
    seed: int,
    stage: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """One record for known tracks under each condition, and one for each kind of stranger."""
    sets: list[tuple[str, TrackSet, Iterable[str]]] = [
        ("known", known, (*CONDITIONS, *DISTANT, *UNREADABLE)),
        ("unknown", strange, (AS_RECORDED,)),
        ("drawn background", background_tracks(BACKGROUND_TRACKS, seed=SEED + seed), (AS_RECORDED,)),
    ]
    if folder is not None:
        places = background_tracks(BACKGROUND_TRACKS, seed=SEED + seed, folder=folder)
        sets.append(("background images", places, (AS_RECORDED,)))
    for name, tracks, conditions in sets:
        for condition in conditions if tracks.tracks else ():
            stage(f"{name}, {condition}")
            record = _counts(bundle, _views(bundle, classify, tracks, condition, SEED + seed))
            yield {"tracks_of": name, "condition": condition, **record}


def _views(
    bundle: Bundle, classify: Classify, tracks: TrackSet, condition: str, seed: int
) -> Iterator[TrackViews]:
    for start in range(0, len(tracks.tracks), CHUNK):
        chunk = tracks.tracks[start : start + CHUNK]
        some = replace(tracks, tracks=tuple(replace(track, frames=track.frames[:LONGEST]) for track in chunk))
        views = views_under(classify, some, (condition,), bundle.input_size, bundle.crop_margin, seed + start)
        yield views.reaching(FEWEST_VIEWS)


def _counts(bundle: Bundle, parts: Iterable[TrackViews]) -> dict[str, int]:
    """How the engine answers for these tracks, all views seen by one camera.

    `unknown` and `cannot_tell` count tracks that were ever called so (the second: and never unknown), `sure`
    those that end with a class at SURE and no warning of any kind, `right` those that end with their class.
    """
    counts = dict.fromkeys(("tracks", "unknown", "cannot_tell", "sure", "right"), 0)
    for tracks in parts:
        ever, last, pmf = _watched(bundle, tracks)
        unknown = ever[:, REASONS.index(OUT_OF_DISTRIBUTION)]
        found = {
            "tracks": np.ones(len(tracks), bool),
            "unknown": unknown,
            "cannot_tell": ever[:, REASONS.index(CANNOT_TELL)] & ~unknown,
            "sure": (pmf.max(axis=1) >= SURE) & ~last.any(axis=1),
            "right": pmf.argmax(axis=1) == tracks.label,
        }
        for name, which in found.items():
            counts[name] += int(which.sum())
    return counts


def _watched(bundle: Bundle, tracks: TrackViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reasons ever raised, and raised last [tracks, reasons]; the last pmf [tracks, classes]."""
    engine = FusionEngine(bundle, FusionSettings())
    ever = np.zeros((len(tracks), len(REASONS)), bool)
    last, pmf = ever.copy(), np.zeros((len(tracks), bundle.classes))
    for step in range(tracks.longest):
        rows = np.flatnonzero(tracks.steps > step)
        ids = tuple(str(row) for row in rows.tolist())
        views = tracks.views_at(step).take(rows)
        result = engine.update(Observation("camera", (step + 1) * FRAME, ids, views))
        ever[rows] |= result.verdicts.raised
        last[rows], pmf[rows] = result.verdicts.raised, result.pmf
    return ever, last, pmf
