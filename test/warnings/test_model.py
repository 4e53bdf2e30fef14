"""The fitted warning model: the way into a bundle and back, and thresholds for stated false-alarm rates."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.types.errors import BundleError
from lla_fusion_ros.types.views import OLDER_QUALITIES, QUALITIES
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.model import RATES, AlarmTable, Detector, Usual, WarningModel, quality_columns
from support.feature_world import FeatureWorld
from support.warned_tracks import scores_along


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


@pytest.fixture(scope="module")
def model(world) -> WarningModel:
    return fit_warnings(world.posterior, world.known(60), world.strange(40))


def test_a_model_survives_the_way_into_a_bundle_and_back(world, model) -> None:
    arrays, record = model.to_parts()
    again = WarningModel.from_parts(arrays, json.loads(json.dumps(record)))
    tracks = world.known(5)
    for a, b in zip(scores_along(world, model, tracks), scores_along(world, again, tracks), strict=True):
        np.testing.assert_array_equal(a.ood_score, b.ood_score)
        np.testing.assert_array_equal(a.p_values, b.p_values)


def test_a_record_without_its_parts_is_refused(model) -> None:
    arrays, record = model.to_parts()
    del record["camera"]
    with pytest.raises(BundleError, match="camera"):
        WarningModel.from_parts(arrays, record)
    with pytest.raises(BundleError, match="bank"):
        WarningModel.from_parts({}, model.to_parts()[1])


def test_a_record_of_an_older_file_is_refused_with_the_way_out(model) -> None:
    arrays, record = model.to_parts()
    record["unreadable"] = record.pop("usual")
    with pytest.raises(BundleError, match="'usual'.*calibrate"):
        WarningModel.from_parts(arrays, record)


def test_scores_beyond_what_is_usual_in_such_pictures_are_alarming(model) -> None:
    """At any quality the p-value falls with the score; at any score it never falls as pictures get worse."""
    rng = np.random.default_rng(0)
    columns = quality_columns(np.zeros((1, len(QUALITIES)))).shape[1]
    table = AlarmTable.measure(rng.normal(size=500))
    linear = Detector(np.zeros(columns), np.ones(columns), rng.normal(0, 0.3, columns), 0.0, table)
    told = replace(model, unknown=replace(model.unknown, alarm=table), usual=Usual(linear, -2.0, 3.0))
    quality = rng.normal(size=(300, len(QUALITIES)))
    quality = quality[np.argsort(told.usual(quality))]
    size, views = np.full(300, np.nan), np.full(300, 9.0)
    scores = np.linspace(-9, 8, 40)
    found = np.stack([told.p_values(np.full(300, s), quality, size, views)[0] for s in scores])
    assert (np.diff(found, axis=0) <= 1e-12).all() and (np.diff(found, axis=1) >= -1e-12).all()
    assert (found[-1] < 0.01).any() and (found[-1] == 1.0).any() and (found[0] == 1.0).all()
    unmeasured = told.p_values(np.zeros(1), np.full((1, len(QUALITIES)), np.nan), size[:1], views[:1])
    assert unmeasured[0] == unmeasured[1] == table.p_value(np.zeros(1))


def test_files_made_before_qualities_had_names_know_the_first_ones(world, model) -> None:
    columns = quality_columns(np.zeros((1, len(OLDER_QUALITIES)))).shape[1]
    linear = Detector(np.zeros(columns), np.ones(columns), np.ones(columns), 0.0, model.unknown.alarm)
    arrays, record = replace(model, usual=Usual(linear, -2.0, 3.0, OLDER_QUALITIES)).to_parts()
    for new in ("names", "distance"):
        del record["usual"][new]
    old = WarningModel.from_parts(arrays, record)
    old.check(world.posterior.networks, world.posterior.features)
    quality = np.random.default_rng(0).normal(size=(20, len(QUALITIES)))
    quality[:, len(OLDER_QUALITIES) :] = np.nan  # as in views recorded then
    p_known, p_readable = old.p_values(np.full(20, 1.0), quality, np.log(np.full(20, 2.0)), np.ones(20))
    assert np.isfinite(p_known).all() and (p_known != p_readable).any()
    record["usual"]["names"] = ["smell"]
    with pytest.raises(BundleError, match="smell"):
        WarningModel.from_parts(arrays, record).check(world.posterior.networks, world.posterior.features)


def test_usual_scores_of_no_range_are_refused(world, model) -> None:
    columns = quality_columns(np.zeros((1, len(QUALITIES)))).shape[1]
    flat = Detector(np.zeros(columns), np.ones(columns), np.zeros(columns), 0.0, model.unknown.alarm)
    for usual, message in ((Usual(flat, 1.0, 0.0), "range"), (Usual(model.unknown, 0.0, 1.0), "usual")):
        with pytest.raises(BundleError, match=message):
            replace(model, usual=usual).check(world.posterior.networks, world.posterior.features)


def test_a_detector_of_another_width_is_refused(world, model) -> None:
    arrays, record = model.to_parts()
    record["unknown"]["scale"] = [1.0]
    with pytest.raises(BundleError, match="scale"):
        WarningModel.from_parts(arrays, record).check(world.posterior.networks, world.posterior.features)


@pytest.mark.parametrize(("key", "value"), [("scores", ["entropy"]), ("distrust", 0.0)])
def test_scores_of_another_version_are_refused(model, key, value) -> None:
    arrays, record = model.to_parts()
    record[key] = value
    with pytest.raises(BundleError, match="calibrate the bundle again"):
        WarningModel.from_parts(arrays, record)


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
