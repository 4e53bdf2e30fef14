"""Arrays with one row per track: the views of a frame, and states.

A view is one crop seen by one network; it is fully described by its logits and its features. A state is a
dataclass of arrays whose first axis is `tracks`: a store keeps all tracks of a vehicle in one, takes out the
rows that a frame touches and puts them back after the update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lla_fusion_ros.types.errors import InputError

State = TypeVar("State")
# Further rows of some tracks: places among the tracks, and one row of the state for each.
Others = Sequence[tuple[np.ndarray, np.ndarray]]
# What is measured of a crop, whatever it shows; see `images.quality`. Older files know the first ones only.
QUALITIES = (
    "brightness",
    "contrast",
    "sharpness",
    "grain",
    "colour",
    "colour_sharpness",
    "clipped",
    "black",
    "focus",
)
OLDER_QUALITIES = QUALITIES[:8]


@dataclass(frozen=True, slots=True)
class Views:
    """One crop of each of several tracks, seen by every network of the ensemble.

    Attributes:
        logits: g = W phi before the softmax.                        [tracks, networks, classes]
        features: last hidden layer with a 1 appended for the bias.  [tracks, networks, features]
        quality: of the crops (`images.quality`), NaN where it is not known.  [tracks, qualities]
        size: side of the box in image pixels, NaN where it is not known.     [tracks]
    """

    logits: np.ndarray
    features: np.ndarray
    quality: np.ndarray | None = None
    size: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def networks(self) -> int:
        return self.logits.shape[1]

    @property
    def classes(self) -> int:
        return self.logits.shape[2]

    def take(self, rows: np.ndarray | slice) -> Views:
        """The views of some of the tracks."""
        of_crops = (None if array is None else array[rows] for array in (self.quality, self.size))
        return Views(self.logits[rows], self.features[rows], *of_crops)

    def check(self, networks: int, classes: int, features: int) -> None:
        """Refuse views that do not fit the ensemble or are not finite; the message names the cause."""
        for name, array, last in (("logits", self.logits, classes), ("features", self.features, features)):
            if array.ndim != 3 or array.shape[1:] != (networks, last):
                raise InputError(
                    f"views.{name} has shape {array.shape}, expected [tracks, {networks}, {last}]"
                )
            if not np.isfinite(array).all():
                raise InputError(f"views.{name} contains NaN or infinity")
        if self.quality is not None and not (
            self.quality.shape == (len(self), len(QUALITIES)) and not np.isinf(self.quality).any()
        ):
            expected = f"[tracks, {len(QUALITIES)}] without infinity"
            raise InputError(f"views.quality has shape {self.quality.shape}, expected {expected}")
        if self.size is not None and self.size.shape != (len(self),):
            raise InputError(f"views.size has shape {self.size.shape}, expected [tracks]")
        if len(self.logits) != len(self.features):
            raise InputError(
                f"views has {len(self.logits)} rows of logits but {len(self.features)} of features"
            )


def box_sides(bbox: np.ndarray) -> np.ndarray:
    """The side of boxes x, y, theta, width, height in image pixels: the root of their area.  [n, 5] -> [n]

    NaN for what came without a box: the whole of an image, from its corner on, is a crop someone else cut.
    """
    x, y, _, width, height = bbox.T
    boxed = (width > 0) & (height > 0) & ((x != width / 2) | (y != height / 2))
    return np.sqrt(np.where(boxed, width, np.nan)) * np.sqrt(np.where(boxed, height, np.nan))


def _arrays(state: Any) -> list[np.ndarray]:
    return [getattr(state, name) for name in state.__match_args__]  # `fields` takes far longer


def add(first: State, second: State) -> State:
    """The sum of two states, field by field."""
    return type(first)(*[a + b for a, b in zip(_arrays(first), _arrays(second), strict=True)])


def take_rows(state: State, rows: np.ndarray | slice) -> State:
    """The state of some tracks; of a slice it is a view of the whole state."""
    return type(state)(*[array[rows] for array in _arrays(state)])


def put_rows(state: State, rows: np.ndarray | slice, part: State) -> None:
    """Write `part` over the given rows of a state that a track store owns (in place)."""
    for array, new in zip(_arrays(state), _arrays(part), strict=True):
        array[rows] = new


class Columns:
    """A state's arrays side by side in one, so that sums of states are sums of one array.

    Args:
        example: a state of the kind.
    """

    def __init__(self, example: Any) -> None:
        self._kind = type(example)
        self._shapes = [array.shape[1:] for array in _arrays(example)]
        self._widths = [int(np.prod(shape)) for shape in self._shapes]
        self._ends = np.cumsum(self._widths).tolist()

    @property
    def width(self) -> int:
        return int(self._ends[-1])

    def pack(self, state: Any) -> np.ndarray:
        """[tracks, width]"""
        parts = zip(_arrays(state), self._widths, strict=True)
        return np.concatenate([array.reshape(len(array), width) for array, width in parts], axis=1)

    def unpack(self, packed: np.ndarray) -> Any:
        """The state again; its arrays are views of `packed`."""
        starts = [0, *self._ends[:-1]]
        parts = zip(starts, self._ends, self._shapes, strict=True)
        return self._kind(*[packed[:, a:b].reshape(len(packed), *shape) for a, b, shape in parts])


def joined_rows(state: State, rows: np.ndarray, others: Others) -> State:
    """The state of some tracks with those of other rows added: sums of tracks that are one object."""
    whole = take_rows(state, rows)
    for places, more in others:
        put_rows(whole, places, add(take_rows(whole, places), take_rows(state, more)))
    return whole


def grown(state: State, empty: State) -> State:
    """The state with the rows of `empty` appended: how a store makes room for more tracks."""
    pairs = zip(_arrays(state), _arrays(empty), strict=True)
    return type(state)(*[np.concatenate(pair) for pair in pairs])


def widened(state: State, empty: State, reserved: int) -> State:
    """The state for more classes, new ones before the last, reserved ones, and the least likely of all.

    Its sums are of probabilities or of their logarithms. empty: one for so many classes
    """

    def wider(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if old.shape == new.shape:
            return old
        named = old.shape[-1] - reserved
        least = np.minimum(2 * old.min(axis=-1, keepdims=True), 0)
        between = np.repeat(least, new.shape[-1] - old.shape[-1], axis=-1)
        return np.concatenate([old[..., :named], between, old[..., named:]], axis=-1)

    return type(state)(*map(wider, _arrays(state), _arrays(empty)))


def rows_of(state: Any) -> int:
    """The number of tracks of a state."""
    return len(_arrays(state)[0])


def state_bytes(state: Any) -> int:
    """The memory of a state: what must not grow with the number of views."""
    return sum(array.nbytes for array in _arrays(state))
