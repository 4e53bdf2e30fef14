"""Thresholds for stated false-alarm rates."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.warnings.model import RATES, AlarmTable


def test_a_stated_rate_holds_in_the_worst_conditions_not_on_average() -> None:
    rng = np.random.default_rng(0)
    conditions = np.repeat(["clear", "rain"], 2000)
    largest = rng.normal(size=4000) + np.where(conditions == "rain", 2.0, 0.0)
    table = AlarmTable.measure_worst(largest, conditions)
    for each in ("clear", "rain"):
        alarms = (largest[conditions == each] >= table.threshold(0.01)).mean()
        assert alarms <= 0.0101, each
    average = AlarmTable.measure(largest)
    assert (largest[conditions == "rain"] >= average.threshold(0.01)).mean() > 0.015


def test_with_an_allowance_the_rate_holds_on_average_and_so_many_times_it_in_each_condition() -> None:
    rng = np.random.default_rng(0)
    conditions = np.repeat(["clear", "fog", "rain"], [8000, 1000, 1000])
    largest = rng.normal(size=10000) + np.where(conditions == "rain", 1.0, 0.0)
    threshold = AlarmTable.measure_worst(largest, conditions, allowance=2.0).threshold(0.02)
    assert (largest >= threshold).mean() <= 0.0201
    assert (largest[conditions == "rain"] >= threshold).mean() == pytest.approx(
        0.04, abs=0.005
    )  # between two rates


def test_conditions_of_a_few_tracks_do_not_count_by_themselves() -> None:
    largest = np.append(np.linspace(0.0, 1.0, 100), [50.0] * 3)
    conditions = np.append(np.full(100, "clear"), ["odd"] * 3)
    assert AlarmTable.measure_worst(largest, conditions).thresholds[:2] == pytest.approx(
        AlarmTable.measure(largest).thresholds[:2]
    )


def test_draws_of_the_same_objects_are_not_more_evidence_of_what_is_rare() -> None:
    rng = np.random.default_rng(0)
    once = rng.exponential(size=100)
    objects = np.repeat(np.arange(100), 10)
    drawn = np.repeat(once, 10)
    counted, extrapolated = AlarmTable.measure(drawn), AlarmTable.measure(drawn, objects)
    assert counted.threshold(0.005) == pytest.approx(once.max())  # the one worst object, ten times
    alone = AlarmTable.measure(once)
    assert extrapolated.threshold(0.01) == pytest.approx(alone.threshold(0.01), rel=0.1)
    assert extrapolated.threshold(0.005) == pytest.approx(np.log(1 / 0.005), rel=0.3)  # of this distribution
    worst = AlarmTable.measure_worst(drawn, np.full(1000, "rain"), objects)
    assert worst.thresholds == extrapolated.thresholds


def test_a_threshold_is_met_by_the_stated_share_of_tracks() -> None:
    largest = np.random.default_rng(0).exponential(size=2000)
    table = AlarmTable.measure(largest)
    for rate in (0.2, 0.05, 0.01):
        assert np.mean(largest >= table.threshold(rate)) == pytest.approx(rate, rel=0.3)
    np.testing.assert_allclose(table.p_value(np.array([table.threshold(0.03)])), 0.03, rtol=1e-6)
    # beyond what 2000 tracks can show, the tail of an exponential is continued: ln(1 / rate)
    assert table.threshold(RATES[-1]) == pytest.approx(np.log(1 / RATES[-1]), rel=0.2)


def test_a_likelihood_ratio_is_never_judged_below_its_odds() -> None:
    table = AlarmTable.measure(np.zeros(100)).at_least_odds()
    assert table.threshold(0.01) == pytest.approx(np.log(100))
    assert table.p_value(np.array([0.0]))[0] == 1.0
