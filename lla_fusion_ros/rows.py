"""States of many tracks at once: dataclasses of arrays whose first axis is `tracks`.

A store keeps all tracks of a vehicle in one such state, takes out the rows that a frame touches and puts them
back after the update.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

State = TypeVar("State")


def _arrays(state: Any) -> list[np.ndarray]:
    return [getattr(state, field.name) for field in fields(state)]


def add(first: State, second: State) -> State:
    """The sum of two states, field by field."""
    return type(first)(*[a + b for a, b in zip(_arrays(first), _arrays(second), strict=True)])


def place_of(rows: np.ndarray) -> np.ndarray | slice:
    """Rows that follow each other as a slice: taking them is then no copy."""
    if len(rows) == 0 or (np.diff(rows) != 1).any():
        return rows
    return slice(int(rows[0]), int(rows[0]) + len(rows))


def take_rows(state: State, rows: np.ndarray | slice) -> State:
    """The state of some tracks; of a slice it is a view of the whole state."""
    return type(state)(*[array[rows] for array in _arrays(state)])


def put_rows(state: State, rows: np.ndarray | slice, part: State) -> None:
    """Write `part` over the given rows of a state that a track store owns (in place)."""
    for array, new in zip(_arrays(state), _arrays(part), strict=True):
        array[rows] = new


def grown(state: State, empty: State) -> State:
    """The state with the rows of `empty` appended: how a store makes room for more tracks."""
    pairs = zip(_arrays(state), _arrays(empty), strict=True)
    return type(state)(*[np.concatenate(pair) for pair in pairs])


def rows_of(state: Any) -> int:
    """The number of tracks of a state."""
    return len(_arrays(state)[0])


def state_bytes(state: Any) -> int:
    """The memory of a state: what must not grow with the number of views."""
    return sum(array.nbytes for array in _arrays(state))
