"""The views of whole tracks as arrays: what fusers and warnings are fitted and scored on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.views import Views


@dataclass(frozen=True, slots=True)
class TrackViews:
    """Tracks of unequal length, padded with zeros to the longest.

    Attributes:
        logits:   [tracks, steps, networks, classes] float32
        features: with the trailing 1.   [tracks, steps, networks, D] float32
        camera:   index of the camera of each view.   [tracks, steps] int
        steps:    how many of the steps of each track are real.   [tracks] int
        label:    class index, -1 for outside the classes.   [tracks] int
        regime:   "clean", "hard" or "mixed".   [tracks] str
        source:   index of the physical object; its tracks under several regimes share it, so that
            folds and bootstraps can keep them together.   [tracks] int
    """

    logits: np.ndarray
    features: np.ndarray
    camera: np.ndarray
    steps: np.ndarray
    label: np.ndarray
    regime: np.ndarray
    source: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    @property
    def networks(self) -> int:
        return self.logits.shape[2]

    @property
    def classes(self) -> int:
        return self.logits.shape[3]

    def take(self, rows: np.ndarray | slice) -> TrackViews:
        """Some of the tracks; a slice copies nothing."""
        return TrackViews(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def select(self, networks: Sequence[int]) -> TrackViews:
        """All tracks, seen by some of the networks."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        chosen = list(networks)
        values["logits"], values["features"] = self.logits[:, :, chosen], self.features[:, :, chosen]
        return TrackViews(**values)

    def chunks(self, tracks: int) -> Iterator[TrackViews]:
        """All tracks, so many at a time, without copying them."""
        for start in range(0, len(self), tracks):
            yield self.take(slice(start, start + tracks))

    def views_at(self, step: int, rows: np.ndarray | slice = slice(None)) -> Views:
        """The views of one step; rows that are shorter give zeros."""
        return Views(self.logits[rows, step], self.features[rows, step])

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All real views without their tracks: logits [n, C, M], features [n, C, D], label [n]."""
        real = np.arange(self.logits.shape[1]) < self.steps[:, None]
        return self.logits[real], self.features[real], np.repeat(self.label, self.steps)

    def first(self, length: int) -> TrackViews:
        """The first `length` views of every track (far away first)."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("logits", "features", "camera"):
            values[name] = values[name][:, :length]
        values["steps"] = np.minimum(self.steps, length)
        return TrackViews(**values)


def joined(parts: Sequence[TrackViews]) -> TrackViews:
    """Several sets of tracks as one; shorter ones are padded."""
    if not parts:
        raise InputError("no tracks to join")
    longest = max(part.logits.shape[1] for part in parts)
    values = {}
    for f in fields(TrackViews):
        arrays = [getattr(part, f.name) for part in parts]
        if f.name in ("logits", "features", "camera"):
            arrays = [_padded(array, longest) for array in arrays]
        values[f.name] = np.concatenate(arrays)
    return TrackViews(**values)


def stacked(parts: Iterable[TrackViews], count: int) -> TrackViews:
    """`count` versions of the same tracks, one after the other; each may be freed as soon as it is copied."""
    values: dict[str, np.ndarray] = {}
    for number, part in enumerate(parts):
        rows = slice(number * len(part), (number + 1) * len(part))
        for f in fields(TrackViews):
            array = getattr(part, f.name)
            if f.name not in values:
                values[f.name] = np.empty((count * len(part), *array.shape[1:]), array.dtype)
            values[f.name][rows] = array
    return TrackViews(**values)


def _padded(array: np.ndarray, steps: int) -> np.ndarray:
    missing = steps - array.shape[1]
    return np.pad(array, [(0, 0), (0, missing)] + [(0, 0)] * (array.ndim - 2)) if missing else array
