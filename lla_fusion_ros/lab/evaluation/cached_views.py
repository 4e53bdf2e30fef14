"""What the networks of a bundle say of a data set, computed once and kept outside the repository."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.lab.datasets import Regime, TrackSet
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews

_VERSION = 4  # raised when the same key would give other arrays, for instance after a change to `degrade`


def default_cache() -> Path:
    """~/.cache/lla_fusion, or below XDG_CACHE_HOME where that is set."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "lla_fusion"


def network_outputs(
    bundle: Bundle,
    tracks: TrackSet,
    regime: Regime,
    seed: int,
    longest: int,
    cache: Path,
    progress: Callable[[int], None] | None = None,
    precision: str = "float32",
) -> TrackViews:
    """Views of the first `longest` frames of every track under a regime; `progress` hears of crops."""
    file = cache / "views" / f"{_key(bundle, tracks, regime, seed, longest, precision)}.npz"
    kept = _load(file)
    if kept is not None:
        if progress is not None:
            progress(int(kept.steps.sum()))
        return kept
    from lla_fusion_ros.networks.classifier import Classifier  # torch: not needed where the cache answers

    classifier = Classifier(bundle, precision=precision)

    def classify(crops: np.ndarray):  # type: ignore[no-untyped-def]
        views = classifier(crops)
        if progress is not None:
            progress(len(crops))
        return views

    views = views_of_tracks(classify, tracks, bundle.input_size, bundle.crop_margin, (regime,), seed, longest)
    arrays = {field.name: getattr(views, field.name) for field in fields(TrackViews)}
    save_arrays(file, {name: array for name, array in arrays.items() if array is not None})
    return views


def _key(bundle: Bundle, tracks: TrackSet, regime: str, seed: int, longest: int, precision: str) -> str:
    """Bundle, data, chosen tracks and their labels, regime, seed, precision: whatever changes the arrays."""
    chosen = [(track.id, track.label, len(track.frames)) for track in tracks.tracks]
    parts = [_VERSION, bundle.hash, tracks.digest, chosen, regime, seed, longest, precision]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _load(file: Path) -> TrackViews | None:
    """None where nothing was kept, or where the file does not read: it is then made again."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return TrackViews(**{f.name: stored[f.name] for f in fields(TrackViews) if f.name in stored})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def save_arrays(file: Path, arrays: dict[str, np.ndarray]) -> None:
    """Whole or not at all, so that an interrupted run leaves nothing that reads as a cache."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
        os.replace(name, file)
    except OSError as error:
        raise InputError(
            f"cannot write the cache '{file.parent}': {error}; name another with --cache"
        ) from None
