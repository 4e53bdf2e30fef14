"""What every fuser is: a frozen object with an initial state, `update` and `predict`.

A fuser works on many tracks at once. Its state is a frozen dataclass of arrays whose first axis is
`tracks`, so that a store can keep all tracks of a vehicle in one set of arrays, take out the rows that
a frame touches, update them in one call and put them back (`take_rows`, `put_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.views import Views

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number of a fuser that is fitted on validation tracks.

    Attributes:
        start: where the search begins, and the value where nothing was fitted.
        low, high: bounds of the search.
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

    def __init__(
        self, posterior: EnsemblePosterior, values: dict[str, float] | None = None, window: int = 30
    ) -> None: ...

    def initial(self, tracks: int) -> Any:
        """The state of `tracks` tracks that have seen nothing."""

    def update(self, state: Any, views: Views) -> Any:
        """The state after one more crop of each track; raises InputError and leaves `state` as it was."""

    def predict(self, state: Any) -> np.ndarray:
        """The fused class distribution; uniform for a track that has seen nothing.  [tracks, classes]"""


def take_rows(state: State, rows: np.ndarray) -> State:
    """The state of some tracks."""
    return type(state)(**{f.name: getattr(state, f.name)[rows] for f in fields(state)})  # type: ignore[arg-type]


def put_rows(state: State, rows: np.ndarray, part: State) -> None:
    """Write `part` over the given rows of a state that a track store owns (in place)."""
    for f in fields(state):  # type: ignore[arg-type]
        getattr(state, f.name)[rows] = getattr(part, f.name)
