"""What every fuser is: a frozen object with an initial state, `update` and `predict`.

A fuser works on many tracks at once. Its state is a frozen dataclass of arrays whose first axis is
`tracks`, so that a store can keep all tracks of a vehicle in one set of arrays, take out the rows that
a frame touches, update them in one call and put them back (`take_rows`, `put_rows`). A frame is small: its
cost is the number of numpy calls, so states that run in every frame keep their sums side by side in one
array and name the columns by properties (`WeightedSum`).

Most fusers are sums: the state after L views is the sum of L contributions, each computed from its view
alone. They derive from `SumFuser` and write only `contribution` and `predict`. Their cost per view and
their memory do not grow with L, the order of the views does not matter, and calibration gets the pmf
after every L of every track from one cumulative sum (`fusion.along.pmf_along`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.views import Views

State = TypeVar("State")
Value = float | list[float]
Values = Mapping[str, Value]  # what a bundle stores for one fuser, as JSON


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number of a fuser that is fitted on validation tracks.

    Attributes:
        start: where the search begins, and the value where nothing was fitted.
        low, high: bounds of the search; a value outside them is refused.
        log: search on a logarithmic scale.
    """

    start: float
    low: float
    high: float
    log: bool = False


class Fuser(Protocol):
    """The interface of every file in this folder."""

    name: ClassVar[str]
    scalars: ClassVar[dict[str, Scalar]]  # what calibration may tune; empty for the plain baselines
    notes: tuple[str, ...]  # cautions that hold once a track has more than one view
    posterior: EnsemblePosterior

    def __init__(
        self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30
    ) -> None: ...

    def initial(self, tracks: int) -> Any:
        """The state of `tracks` tracks that have seen nothing."""

    def update(self, state: Any, views: Views) -> Any:
        """The state after one more crop of each track; raises InputError and leaves `state` as it was."""

    def predict(self, state: Any) -> np.ndarray:
        """The fused class distribution; uniform for a track that has seen nothing.  [tracks, classes]"""


@dataclass(frozen=True, slots=True)
class FitTracks:
    """Validation tracks that a fuser fits itself on, padded to the longest.

    Attributes:
        logits:    [tracks, steps, networks, classes]
        features:  [tracks, steps, networks, D]
        steps: how many of the steps of each track are real.     [tracks]
        label: class, -1 for outside the classes.                [tracks]
        source: the physical object; None: each track another.   [tracks]
    """

    logits: np.ndarray
    features: np.ndarray
    steps: np.ndarray
    label: np.ndarray
    source: np.ndarray | None = None

    @property
    def objects(self) -> int:
        """How many physical objects the tracks show; the same one may be there under several regimes."""
        return len(self.label if self.source is None else np.unique(self.source))

    def take(self, rows: np.ndarray) -> FitTracks:
        """Some of the tracks."""
        source = None if self.source is None else self.source[rows]
        return FitTracks(self.logits[rows], self.features[rows], self.steps[rows], self.label[rows], source)


class BaseFuser:
    """What the fusers share: the posterior, checked values, checked views.

    A fuser with a better way to fit itself than a search over its scalars has a classmethod
    `fit(posterior, tracks: FitTracks) -> Values`; calibration calls it in the place of the search.
    """

    name: ClassVar[str]
    scalars: ClassVar[dict[str, Scalar]] = {}
    options: ClassVar[dict[str, Scalar]] = {}  # values a user may set and calibration leaves alone
    vectors: ClassVar[tuple[str, ...]] = ()  # names of values that are lists, set by `fit`

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        if window < 1:
            raise InputError(f"window of fuser '{self.name}' is {window}, it must be at least 1")
        self.posterior = posterior
        self.window = window
        self.notes: tuple[str, ...] = ()
        given = dict(values or {})
        self.vector = {
            key: _checked_vector(self.name, key, given.pop(key)) for key in self.vectors if key in given
        }
        self.value = {key: scalar.start for key, scalar in (self.scalars | self.options).items()}
        for key, number in given.items():
            self.value[key] = self._checked_scalar(key, number)

    def _checked_scalar(self, key: str, number: Value) -> float:
        scalar = (self.scalars | self.options).get(key)
        if scalar is None:
            known = ", ".join((*self.scalars, *self.options, *self.vectors)) or "none"
            raise InputError(f"fuser '{self.name}' has no value '{key}'; it knows: {known}")
        if not isinstance(number, int | float) or not scalar.low <= number <= scalar.high:
            raise InputError(
                f"value '{key}' of fuser '{self.name}' is {number}, "
                f"it must be in [{scalar.low:g}, {scalar.high:g}]"
            )
        return float(number)

    def measured(self, views: Views, state: Any = None) -> MeasuredViews:
        """The views, checked against the ensemble and the state, with their signs of quality at hand."""
        checked = measured(views, self.posterior)
        if state is not None and len(views) != rows_of(state):
            raise InputError(f"the state has {rows_of(state)} tracks but there are views of {len(views)}")
        return checked


class SumFuser(BaseFuser):
    """A fuser whose state is the sum of one contribution per view."""

    def initial(self, tracks: int) -> Any:
        """The state of `tracks` tracks that have seen nothing: all sums zero."""
        raise NotImplementedError

    def contribution(self, views: MeasuredViews) -> Any:
        """What one view of each track adds to the state."""
        raise NotImplementedError

    def update(self, state: Any, views: Views) -> Any:
        """The state after one more crop of each track."""
        return add(state, self.contribution(self.measured(views, state)))


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The state of a weighted mean that runs over views.

    Attributes:
        sums: the properties below side by side, so that one call adds them all.  [tracks, 2 + classes]
    """

    sums: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """L, the number of views.  [tracks]"""
        return self.sums[:, 0]

    @property
    def weight(self) -> np.ndarray:
        """Sum of the weights.  [tracks]"""
        return self.sums[:, 1]

    @property
    def total(self) -> np.ndarray:
        """Sum of weight times class scores.  [tracks, classes]"""
        return self.sums[:, 2:]

    @classmethod
    def zeros(cls, tracks: int, classes: int) -> WeightedSum:
        return cls(np.zeros((tracks, 2 + classes)))

    @classmethod
    def one(cls, weight: np.ndarray, scores: np.ndarray) -> WeightedSum:
        """The contribution of one view of each track."""
        sums = np.empty((len(scores), 2 + scores.shape[1]))
        sums[:, 0], sums[:, 1] = 1.0, weight
        np.multiply(sums[:, 1:2], scores, out=sums[:, 2:])
        return cls(sums)

    def mean(self) -> np.ndarray:
        """The weighted mean, zero for a track that has seen nothing.  [tracks, classes]"""
        return self.sums[:, 2:] / np.maximum(self.sums[:, 1:2], SMALLEST)


SMALLEST = 1e-300  # keeps 0/0 at 0 for tracks that have seen nothing


def growth(count: np.ndarray, alpha: float, temperature: float) -> np.ndarray:
    """L^alpha / T of METHOD 3.4: how much surer L views are than one.  [tracks, 1]

    alpha = 0 averages the evidence (ten frames at .7 stay at .7), alpha = 1 adds it up as if the views
    were independent; correlated frames lie in between.
    """
    return (np.maximum(count, 1.0) ** alpha / temperature)[:, None]


def _checked_vector(fuser: str, key: str, numbers: Value) -> np.ndarray:
    vector = np.asarray(numbers, np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InputError(
            f"value '{key}' of fuser '{fuser}' must be a list of finite numbers, it is {numbers}"
        )
    return vector


def _names(state: Any) -> tuple[str, ...]:
    """The fields of a state, as the dataclass remembers them: asked for several times a frame."""
    return state.__match_args__


def add(first: State, second: State) -> State:
    """The sum of two states, field by field."""
    return type(first)(*[getattr(first, name) + getattr(second, name) for name in _names(first)])


def place_of(rows: np.ndarray) -> np.ndarray | slice:
    """Rows that follow each other as a slice: taking them is then no copy, which is most of a small frame."""
    count = len(rows)
    if count == 0:
        return rows
    first = int(rows[0])
    if count > 1 and (rows[-1] - first != count - 1 or (rows[1:] <= rows[:-1]).any()):
        return rows
    return slice(first, first + count)


def take_rows(state: State, rows: np.ndarray | slice) -> State:
    """The state of some tracks; of a slice it is a view of the whole state."""
    return type(state)(*[getattr(state, name)[rows] for name in _names(state)])


def put_rows(state: State, rows: np.ndarray | slice, part: State) -> None:
    """Write `part` over the given rows of a state that a track store owns (in place)."""
    for name in _names(state):
        getattr(state, name)[rows] = getattr(part, name)


def grown(state: State, empty: State) -> State:
    """The state with the rows of `empty` appended: how a store makes room for more tracks."""
    return type(state)(
        *[np.concatenate([getattr(state, name), getattr(empty, name)]) for name in _names(state)]
    )


def rows_of(state: Any) -> int:
    """The number of tracks of a state."""
    return len(getattr(state, _names(state)[0]))


def state_bytes(state: Any) -> int:
    """The memory of a state: what must not grow with the number of views."""
    return sum(getattr(state, name).nbytes for name in _names(state))
