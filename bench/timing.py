"""Fair comparison on a machine that others use too: rounds of all candidates in turn, medians, CPU time.

The clock is the CPU time of this process, not the wall clock: what other programs do then disturbs the ratios
far less. (They still share caches and memory bandwidth, hence rounds, medians and quartiles.)
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray | list[float]) -> Spread:
        low, median, high = np.percentile(values, [25, 50, 75])
        return cls(float(median), float(low), float(high))

    def record(self, name: str, digits: int = 5) -> dict[str, Any]:
        """As JSON: `name` and `name_quartiles`."""
        rounded = [float(f"{value:.{digits}g}") for value in (self.median, self.low, self.high)]
        return {name: rounded[0], f"{name}_quartiles": rounded[1:]}


@dataclass(frozen=True, slots=True)
class Rounds:
    """CPU seconds per call of each candidate, round by round.  name -> [rounds]"""

    seconds: dict[str, np.ndarray]

    def cost(self, name: str) -> Spread:
        """Seconds per call."""
        return Spread.of(self.seconds[name])

    def ratio(self, name: str, base: str, calls: int = 1) -> Spread:
        """What one of the `calls` within a call of `name` costs against `base`, ratios within each round."""
        return Spread.of(self.seconds[name] / calls / self.seconds[base])


def interleaved(calls: Mapping[str, Call], rounds: int, least: float = 2e-3) -> Rounds:
    """Time all calls in turn, `rounds` times.

    A call's method `prepare`, if any, is called before each of its turns, off the clock. A turn repeats its
    call until `least` seconds of CPU time have passed, so that the clock's resolution does not matter; the
    order of the candidates changes from round to round.
    """
    repeats = {name: _repeats(call, least) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection in one turn would be charged to the wrong candidate
    try:
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                seconds[name].append(_turn(calls[name], repeats[name]))
    finally:
        if was_enabled:
            gc.enable()
    return Rounds({name: np.array(values) for name, values in seconds.items()})


def _repeats(call: Call, least: float) -> int:
    call()  # first calls allocate and choose kernels
    once = max(_turn(call, 1), 1e-7)
    return max(1, round(least / once))


def _turn(call: Call, repeats: int) -> float:
    prepare = getattr(call, "prepare", None)
    if prepare is not None:
        prepare()
    begun = time.process_time()
    for _ in range(repeats):
        call()
    return max(time.process_time() - begun, 1e-9) / repeats
