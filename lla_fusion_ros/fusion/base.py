"""What every fuser is: an object with an initial state, `update` and `predict`.

A fuser works on many tracks at once; its state is a dataclass of arrays, one row per track (`types.views`).

Most fusers are sums: the state after L views is the sum of L contributions, each computed from its view
alone. They derive from `SumFuser` and write only `initial`, `contribution` and `predict`. Their cost per view
and their memory do not grow with L, the order of the views does not matter, and the pmf after every L of
every track comes from one cumulative sum (`along.pmf_along`).

What numpy and torch call by different names (`exp`, `log`, `softmax` ...) stands here for both, so that one
formula serves fusing and fitting. Operators, `clip`, `sum`, `mean` and indexing are the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax as numpy_softmax
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Others, Views, add, joined_rows, rows_of, take_rows

Array = Any  # np.ndarray, or torch.Tensor while a fuser is fitted
Value = float | list[float]
Values = Mapping[str, Value]  # what a bundle stores for one fuser, as JSON

SMALLEST = 1e-300  # keeps 0/0 at 0 for tracks that have seen nothing
# Of a view, times (side of its box / 20 pixels)^size: what is near is seen better.
MOST_BY_SIZE = 3.0
FLOOR = 1e-12  # a class no view gave any mass is improbable, not impossible


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


class Fuser:
    """A rule that turns views into class distributions; every other file of this folder has one.

    Attributes:
        name: what users call it.
        scalars: what calibration may tune; empty for the plain baselines.
        options: values a user may set and calibration leaves alone.
        vectors: names of values that are lists, set by `fit`.
        notes: cautions that hold once a track has more than one view.
    """

    name: ClassVar[str]
    scalars: ClassVar[dict[str, Scalar]] = {}
    options: ClassVar[dict[str, Scalar]] = {}
    vectors: ClassVar[tuple[str, ...]] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        if window < 1:
            raise InputError(f"window of fuser '{self.name}' is {window}, it must be at least 1")
        self.posterior = posterior
        self.window = window
        self.value: dict[str, Any] = {
            key: scalar.start for key, scalar in (self.scalars | self.options).items()
        }
        for key, given in (values or {}).items():
            check = self._checked_vector if key in self.vectors else self._checked_scalar
            self.value[key] = check(key, given)

    def initial(self, tracks: int) -> Any:
        """The state of `tracks` tracks that have seen nothing."""
        raise NotImplementedError

    def update(self, state: Any, views: Views) -> Any:
        """The state after one more crop of each track; raises InputError and leaves `state` as it was."""
        raise NotImplementedError

    def predict(self, state: Any) -> Array:
        """The fused class distribution; uniform for a track that has seen nothing.  [tracks, classes]"""
        raise NotImplementedError

    def predict_joined(self, state: Any, rows: np.ndarray, others: Others) -> np.ndarray:
        """The class distribution of tracks of which some are one object with other rows of the state.

        Unless the state is a sum, there is no joint one: it is the mean of what each of its tracks says.
        """
        total = np.array(self.predict(take_rows(state, rows)))
        count = np.ones((len(rows), 1))
        for places, more in others:
            total[places] += self.predict(take_rows(state, more))
            count[places] += 1
        return total / count

    @classmethod
    def fit(cls, posterior: EnsemblePosterior, tracks: TrackViews) -> dict[str, Value] | None:
        """Values fitted on validation tracks; None where a search over the scalars does it."""
        return None

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

    def _checked_vector(self, key: str, numbers: Value) -> np.ndarray:
        vector = np.asarray(numbers, np.float64)
        if vector.ndim != 1 or not np.isfinite(vector).all():
            raise InputError(
                f"value '{key}' of fuser '{self.name}' must be a list of finite numbers, it is {numbers}"
            )
        return vector

    def network_weights(self) -> np.ndarray:
        """The value `weights`, one for each network, at sum one; equal where it is not set.  [networks]"""
        networks = self.posterior.networks
        weights = self.value.get("weights", np.ones(networks))
        if len(weights) != networks:
            raise InputError(f"fuser '{self.name}' has {len(weights)} weights for {networks} networks")
        if (weights < 0).any() or weights.sum() <= 0:
            raise InputError(
                f"weights of fuser '{self.name}' are {weights.tolist()}, none may be negative, not all zero"
            )
        return weights / weights.sum()

    def measured(self, views: Views, state: Any = None) -> MeasuredViews:
        """The views, checked against the ensemble and the state, with what they tell at hand."""
        checked = measured(views, self.posterior)
        if state is not None and len(views) != rows_of(state):
            raise InputError(f"the state has {rows_of(state)} tracks but there are views of {len(views)}")
        return checked


class SumFuser(Fuser):
    """A fuser whose state is the sum of one contribution per view.

    It writes `contribution`, or `inputs` and `sums` where torch is to differentiate the formula.
    """

    def contribution(self, views: MeasuredViews) -> Any:
        """What one view of each track adds to the state."""
        return self.sums(*self.inputs(views))

    def inputs(self, views: MeasuredViews) -> tuple[np.ndarray, ...]:
        """What the formula reads of views; no learned value enters here."""
        raise NotImplementedError

    def sums(self, *inputs: Array) -> Any:
        """The contribution of one view of each track, from its inputs."""
        raise NotImplementedError

    def predict_joined(self, state: Any, rows: np.ndarray, others: Others) -> np.ndarray:
        """What tracks saw that are one object adds up."""
        return self.predict(joined_rows(state, rows, others))

    def update(self, state: Any, views: Views) -> Any:
        """The state after one more crop of each track."""
        return add(state, self.contribution(self.measured(views, state)))


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The state of a weighted mean that runs over views.

    Attributes:
        count: L, the number of views.             [tracks]
        weight: sum of the weights.                [tracks]
        total: sum of weight times class scores.   [tracks, classes]
    """

    count: Array
    weight: Array
    total: Array

    @classmethod
    def zeros(cls, tracks: int, classes: int) -> WeightedSum:
        return cls(np.zeros(tracks), np.zeros(tracks), np.zeros((tracks, classes)))

    @classmethod
    def one(cls, weight: Array, scores: Array) -> WeightedSum:
        """The contribution of one view of each track."""
        return cls(ones_like(weight), weight, weight[:, None] * scores)

    def mean(self) -> Array:
        """The weighted mean, zero for a track that has seen nothing.  [tracks, classes]"""
        return self.total / self.weight.clip(min=SMALLEST)[:, None]


def growth(count: Array, alpha: Array, temperature: Array) -> Array:
    """L^alpha / T: how much surer L views are than one.  [tracks, 1]

    alpha = 0 averages the evidence (ten frames at .7 stay at .7), alpha = 1 adds it up as if the views
    were independent; correlated frames lie in between.
    """
    return (count.clip(min=1.0) ** alpha / temperature)[:, None]


def _is_tensor(x: Array) -> bool:
    return hasattr(x, "requires_grad")


def exp(x: Array) -> Array:
    return x.exp() if _is_tensor(x) else np.exp(x)


def log(x: Array) -> Array:
    return x.log() if _is_tensor(x) else np.log(x)


def ones_like(x: Array) -> Array:
    return x.new_ones(x.shape) if _is_tensor(x) else np.ones_like(x)


def largest(x: Array) -> Array:
    """Over the last axis, which stays."""
    return x.amax(-1, keepdim=True) if _is_tensor(x) else x.max(axis=-1, keepdims=True)


def softmax(x: Array) -> Array:
    """Over the last axis."""
    return x.softmax(-1) if _is_tensor(x) else numpy_softmax(x)
