"""Costs from a file, and the decision of least expected cost."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.reliance.decisions import read_costs
from lla_fusion_ros.types.errors import InputError

NAMES = ("stop", "yield", "priority")
GOOD = """
halt: {stop: 0, otherwise: 5, unknown: 1}
slow: {1: 0, otherwise: 3, unknown: 2}
go: {priority: 0, otherwise: 50}
"""


def test_the_cheapest_decision_is_taken_and_strangers_have_costs_of_their_own(tmp_path) -> None:
    file = tmp_path / "costs.yaml"
    file.write_text(GOOD)
    costs = read_costs(file, NAMES)
    assert costs.decisions == ("halt", "slow", "go")
    pmf = np.array([[0.9, 0.05, 0.05], [0.0, 0.02, 0.98], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    best, cost = costs.decide(pmf, np.array([False, False, False, True]))
    assert [costs.decisions[i] for i in best] == ["halt", "go", "slow", "halt"]
    np.testing.assert_allclose(cost, [0.5, 1.0, 0.8 * 3, 1.0])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected decisions"),
        ("[1, 2]", "expected decisions"),
        ("halt: {stop: 1}", "'otherwise' among them"),
        ("halt: {stopp: 1, otherwise: 0}", "did you mean 'stop'"),
        ("halt: {7: 1, otherwise: 0}", "no class '7'"),
        ("halt: {stop: a lot, otherwise: 0}", "no finite number"),
        ("halt: {otherwise: .inf}", "no finite number"),
        ("halt: {", "cannot read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_a_sentence(tmp_path, text, sentence) -> None:
    file = tmp_path / "costs.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_costs(file, NAMES)
    with pytest.raises(InputError, match="cannot read"):
        read_costs(tmp_path / "none.yaml", NAMES)
