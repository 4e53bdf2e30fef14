"""How often tracks are called unknown, or cannot be told, by condition: as a vehicle would see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.lab.calibration.warning_tracks import views_under
from lla_fusion_ros.lab.datasets import TrackSet
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import CANNOT_TELL, OUT_OF_DISTRIBUTION, REASONS

FRAME = 100_000_000  # nanoseconds
SURE = 0.9
FEWEST_VIEWS = 3  # shorter tracks are left out: warnings wait for so many
CHUNK = 50  # tracks at a time


def condition_rates(
    bundle: Bundle,
    classify: Callable[[np.ndarray], Views],
    tracks: TrackSet,
    conditions: Sequence[str],
    seed: int,
) -> list[dict[str, Any]]:
    """One record a condition: numbers of tracks ever called unknown, or else that could not be told."""
    records = []
    for condition in conditions:
        views = views_under(classify, tracks, (condition,), bundle.input_size, bundle.crop_margin, seed)
        records.append({"condition": condition, **rates(bundle, views.reaching(FEWEST_VIEWS))})
    return records


def rates(bundle: Bundle, tracks: TrackViews) -> dict[str, Any]:
    """How the engine answers for these tracks, all views seen by one camera.

    `unknown` and `cannot_tell` count tracks that were ever called so (the second: and never unknown), `sure`
    those that end with a class at SURE and no warning of any kind, `right` those that end with their class.
    """
    parts = [_watched(bundle, chunk) for chunk in tracks.chunks(CHUNK)]
    ever, last, top, sure = (np.concatenate(column) for column in zip(*parts, strict=True))
    unknown = ever[:, REASONS.index(OUT_OF_DISTRIBUTION)]
    unsure = ever[:, REASONS.index(CANNOT_TELL)] & ~unknown
    return {
        "tracks": len(tracks),
        "unknown": int(unknown.sum()),
        "cannot_tell": int(unsure.sum()),
        "sure": int((sure & ~last.any(axis=1)).sum()),
        "right": int((top == tracks.label).sum()),
    }


def _watched(bundle: Bundle, tracks: TrackViews) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Reasons ever raised, and last [tracks, reasons]; the last class and whether it was sure [tracks]."""
    engine = FusionEngine(bundle, FusionSettings(track_id_scope="global"))
    ever = np.zeros((len(tracks), len(REASONS)), bool)
    last, top, sure = ever.copy(), np.zeros(len(tracks), int), np.zeros(len(tracks), bool)
    for step in range(tracks.longest):
        rows = np.flatnonzero(tracks.steps > step)
        quality = None if tracks.quality is None else tracks.quality[rows, step]
        views = Views(tracks.logits[rows, step], tracks.features[rows, step], quality)
        ids = tuple(str(row) for row in rows.tolist())
        result = engine.update(Observation("camera", (step + 1) * FRAME, ids, views))
        ever[rows] |= result.verdicts.raised
        last[rows] = result.verdicts.raised
        top[rows], sure[rows] = result.pmf.argmax(axis=1), result.pmf.max(axis=1) >= SURE
    return ever, last, top, sure
