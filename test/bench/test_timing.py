"""How the benchmark compares; no test here looks at how fast anything is."""

from __future__ import annotations

import numpy as np
import pytest

from bench.timing import Rounds, Spread, interleaved


def test_a_spread_is_the_median_and_the_quartiles():
    spread = Spread.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (spread.low, spread.median, spread.high) == (2.0, 3.0, 4.0)
    assert spread.record("cost") == {"cost": 3.0, "cost_quartiles": [2.0, 4.0]}


def test_ratios_are_taken_within_rounds_so_that_a_slow_moment_cancels():
    rounds = Rounds({"a": np.array([2.0, 20.0, 2.0]), "b": np.array([1.0, 10.0, 1.0])})
    assert rounds.ratio("a", "b") == Spread(2.0, 2.0, 2.0)


def test_all_candidates_take_turns_and_change_places():
    order: list[str] = []
    timed = interleaved({name: lambda name=name: order.append(name) for name in "ab"}, rounds=4, least=0.0)
    assert {name: len(values) for name, values in timed.seconds.items()} == {"a": 4, "b": 4}
    turns = order[-8:]
    assert turns == ["a", "b", "b", "a", "a", "b", "b", "a"]


def test_preparation_comes_before_every_turn():
    class Candidate:
        def __init__(self):
            self.ready = 0

        def prepare(self):
            self.ready += 1

        def __call__(self):
            assert self.ready

    candidate = Candidate()
    candidate.prepare()  # the very first call, which only warms up, is no turn
    interleaved({"one": candidate}, rounds=3, least=0.0)
    assert candidate.ready == 1 + 1 + 3  # ours, the trial turn, the rounds


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0]])
def test_few_rounds_are_enough(values):
    assert Spread.of(values).median == 1.0
