"""The bounded part of the fault campaign; `make faults` runs all of it. See docs/robustness.md."""

from __future__ import annotations

import pytest

from faults.campaign import run_campaign
from faults.outcome import Checks
from faults.registry import all_faults


def test_a_counter_that_did_not_grow_as_expected_is_a_failure():
    checks = Checks()
    checks.counts({"dropped_late": 3}, {"dropped_late": 3}, "left")
    assert not checks.failures
    checks.counts({"dropped_late": 3, "dropped_bad_image": 1}, {"dropped_late": 2}, "left")
    assert len(checks.failures) == 2


@pytest.mark.timeout(900)  # only a stuck one comes near it; two busy cores need room
def test_the_nodes_survive_the_bounded_part_of_the_campaign():
    faults = [fault for fault in all_faults() if fault.bounded]
    failures = {found.name: found.failures for found in run_campaign(faults, share=0.2) if not found.good}
    assert not failures
