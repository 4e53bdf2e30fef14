"""The views of whole tracks as arrays: what fusers and warnings are fitted and scored on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import Views


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
        quality:  of the crops, where it was measured.   [tracks, steps, qualities] float32
        size:     side of the box in image pixels, NaN where it is not known.   [tracks, steps] float32
    """

    logits: np.ndarray
    features: np.ndarray
    camera: np.ndarray
    steps: np.ndarray
    label: np.ndarray
    regime: np.ndarray
    source: np.ndarray
    quality: np.ndarray | None = None
    size: np.ndarray | None = None

    @classmethod
    def of_one_camera(
        cls,
        logits: np.ndarray,
        features: np.ndarray,
        steps: np.ndarray,
        label: np.ndarray,
        source: np.ndarray | None = None,
    ) -> TrackViews:
        """Tracks of which nothing more is known; without `source` each shows another object."""
        camera = np.zeros(logits.shape[:2], np.int64)
        source = np.arange(len(label)) if source is None else source
        return cls(logits, features, camera, steps, label, np.full(len(label), "clean"), source)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def networks(self) -> int:
        return self.logits.shape[2]

    @property
    def classes(self) -> int:
        return self.logits.shape[3]

    @property
    def longest(self) -> int:
        """Steps of the arrays, those that pad shorter tracks included."""
        return self.logits.shape[1]

    @property
    def objects(self) -> int:
        """How many physical objects the tracks show."""
        return len(np.unique(self.source))

    @property
    def real(self) -> np.ndarray:
        """Which views exist; the others are padding.  [tracks, steps] bool"""
        return np.arange(self.longest) < self.steps[:, None]

    def take(self, rows: np.ndarray | slice) -> TrackViews:
        """Some of the tracks; a slice copies nothing."""
        return TrackViews(
            **{f.name: a[rows] for f in fields(self) if (a := getattr(self, f.name)) is not None}
        )

    def reaching(self, length: int) -> TrackViews:
        """The tracks of at least `length` views."""
        return self.take(self.steps >= length)

    def select(self, networks: Sequence[int]) -> TrackViews:
        """All tracks, seen by some of the networks."""
        chosen = list(networks)
        return replace(self, logits=self.logits[:, :, chosen], features=self.features[:, :, chosen])

    def chunks(self, tracks: int) -> Iterator[TrackViews]:
        """All tracks, so many at a time, without copying them."""
        for start in range(0, len(self), tracks):
            yield self.take(slice(start, start + tracks))

    def views_at(self, step: int) -> Views:
        """The views of one step; tracks that are shorter give zeros."""
        of_crops = (None if array is None else array[:, step] for array in (self.quality, self.size))
        return Views(self.logits[:, step], self.features[:, step], *of_crops)

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All real views without their tracks: logits [n, C, M], features [n, C, D], label [n]."""
        return self.logits[self.real], self.features[self.real], np.repeat(self.label, self.steps)


def joined(parts: Sequence[TrackViews]) -> TrackViews:
    """Several sets of tracks as one; shorter ones are padded."""
    if not parts:
        raise InputError("no tracks to join")
    longest = max(part.longest for part in parts)
    values = {}
    for f in fields(TrackViews):
        arrays = [getattr(part, f.name) for part in parts]
        if any(array is None for array in arrays):
            continue
        if f.name in ("logits", "features", "camera", "quality", "size"):
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
            if array is None:
                continue
            if f.name not in values:
                values[f.name] = np.empty((count * len(part), *array.shape[1:]), array.dtype)
            values[f.name][rows] = array
    return TrackViews(**values)


def _padded(array: np.ndarray, steps: int) -> np.ndarray:
    missing = steps - array.shape[1]
    return np.pad(array, [(0, 0), (0, missing)] + [(0, 0)] * (array.ndim - 2)) if missing else array
