"""The fitted warning model: detection, stated false-alarm rates, and the way into a bundle and back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from lla_fusion_ros.errors import BundleError, InputError
from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.warnings.alarm import RATES, AlarmTable
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.logistic import RIDGE, fit_logistic
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.monitor import Findings, Monitor
from support.feature_world import FeatureWorld

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


@pytest.fixture(scope="module")
def model(world) -> WarningModel:
    return fit_warnings(world.posterior, world.known(150), world.strange(80))


def findings(monitor: Monitor, states) -> Findings:
    return Findings(np.column_stack([monitor.strangeness(states[0]), monitor.contradiction(states[1])]))


def findings_along(world, model, tracks):
    monitor = Monitor(model, world.posterior)
    states = monitor.initial(len(tracks.label))
    found = []
    for step in range(tracks.logits.shape[1]):
        views = measured(tracks.views(step), world.posterior)
        states = monitor.update(*states, views, int(tracks.camera[0, step]), (step + 1) * SECOND // 10)
        found.append(findings(monitor, states))
    return found


def test_strangers_score_higher_than_known_objects(world, model) -> None:
    known = findings_along(world, model, world.known(60))[-1].ood_score
    strange = findings_along(world, model, world.strange(60))[-1].ood_score
    assert np.mean(strange[:, None] > known[None, :]) > 0.95
    assert model.quality["auroc_combined"] > 0.95


def test_false_alarms_on_fresh_tracks_are_near_the_stated_rate(world, model) -> None:
    found = findings_along(world, model, world.known(300))
    lowest = np.min([f.familiarity for f in found[2:]], axis=0)
    assert np.mean(lowest <= 0.05) < 0.15
    switched = np.min([f.consistency for f in found], axis=0)
    assert np.mean(switched <= 0.01) < 0.05


def test_a_switch_is_found_within_five_views(world, model) -> None:
    first, second = world.known(100), world.known(100)
    other = first.label != second.label
    monitor = Monitor(model, world.posterior)
    states = monitor.initial(100)
    lowest = np.ones(100)
    for step, tracks in enumerate([first] * 8 + [second] * 5):
        views = measured(tracks.views(step % 12), world.posterior)
        states = monitor.update(*states, views, 0, (step + 1) * SECOND // 10)
        if step >= 8:
            lowest = np.minimum(lowest, findings(monitor, states).consistency)
    assert np.mean(lowest[other] <= 0.01) > 0.9
    assert np.mean(lowest[~other] <= 0.01) < 0.2


def test_cameras_that_see_different_classes_are_found(world, model) -> None:
    first, second = world.known(100), world.known(100)
    other = first.label != second.label
    monitor = Monitor(model, world.posterior)
    states = monitor.initial(100)
    for step in range(6):
        for camera, tracks in enumerate((first, second)):
            views = measured(tracks.views(step), world.posterior)
            states = monitor.update(*states, views, camera, (step + 1) * SECOND // 10)
    agreement = findings(monitor, states).agreement
    assert np.mean(agreement[other] <= 0.01) > 0.9
    assert np.mean(agreement[~other] <= 0.01) < 0.1


def test_a_model_survives_the_way_into_a_bundle_and_back(world, model) -> None:
    arrays, record = model.to_parts()
    again = WarningModel.from_parts(arrays, json.loads(json.dumps(record)))
    tracks = world.known(5)
    for a, b in zip(findings_along(world, model, tracks), findings_along(world, again, tracks), strict=True):
        np.testing.assert_array_equal(a.ood_score, b.ood_score)
        np.testing.assert_array_equal(a.consistency, b.consistency)


def test_a_record_without_its_parts_is_refused(model) -> None:
    arrays, record = model.to_parts()
    del record["switch"]
    with pytest.raises(BundleError, match="switch"):
        WarningModel.from_parts(arrays, record)
    with pytest.raises(BundleError, match="bank"):
        WarningModel.from_parts({}, model.to_parts()[1])


def test_scores_of_another_version_are_refused(model) -> None:
    arrays, record = model.to_parts()
    record["scores"] = ["entropy"]
    with pytest.raises(BundleError, match="make the bundle anew"):
        WarningModel.from_parts(arrays, record)


def test_too_few_tracks_are_refused(world) -> None:
    with pytest.raises(InputError, match="at least 10 validation tracks"):
        fit_warnings(world.posterior, world.known(5), world.strange(20))


def test_single_image_tracks_can_be_fitted_and_never_show_a_switch(world) -> None:
    model = fit_warnings(world.posterior, world.known(60, steps=1), world.strange(40, steps=1))
    found = findings_along(world, model, world.known(20, steps=12))
    assert min(f.consistency.min() for f in found) == 1.0


def test_tracks_of_several_cameras_give_the_camera_threshold(world) -> None:
    model = fit_warnings(world.posterior, world.known(60, cameras=2), world.strange(40))
    assert model.camera.tracks == 60


def test_a_threshold_is_met_by_the_stated_share_of_tracks() -> None:
    largest = np.random.default_rng(0).exponential(size=2000)
    table = AlarmTable.measure(largest)
    for rate in (0.2, 0.05, 0.01):
        assert np.mean(largest >= table.threshold(rate)) == pytest.approx(rate, rel=0.3)
    np.testing.assert_allclose(table.share(np.array([table.threshold(0.03)])), 0.03, rtol=1e-6)
    # beyond what 2000 tracks can show, the tail of an exponential is continued: ln(1 / rate)
    assert table.threshold(RATES[-1]) == pytest.approx(np.log(1 / RATES[-1]), rel=0.2)


def test_a_likelihood_ratio_is_never_judged_below_its_odds() -> None:
    table = AlarmTable.measure(np.zeros(100)).at_least_odds()
    assert table.threshold(0.01) == pytest.approx(np.log(100))
    assert table.share(np.array([0.0]))[0] == 1.0


def test_the_logistic_fit_equals_the_reference_implementation() -> None:
    rng = np.random.default_rng(0)
    negative, positive = rng.normal(size=(80, 3)), rng.normal(size=(50, 3)) + 0.7
    intercept, coefficients = fit_logistic(negative, positive)
    weight = np.repeat([0.5 / 80, 0.5 / 50], [80, 50])
    reference = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=1000)
    reference.fit(np.concatenate([negative, positive]), np.repeat([0, 1], [80, 50]), weight)
    np.testing.assert_allclose(coefficients, reference.coef_[0], rtol=1e-4)
    assert intercept == pytest.approx(reference.intercept_[0], rel=1e-4)


def test_the_switch_test_reads_classes_from_the_logits_alone(world) -> None:
    """With features that say nothing, spliced tracks are still found by their pmfs."""
    known = world.known(120)
    blank = replace(known, features=np.random.default_rng(0).normal(size=known.features.shape))
    model = fit_warnings(world.posterior, blank, world.strange(40))
    assert model.quality["switch_detected_5"] > 0.9


def test_features_of_the_tracks_themselves_do_not_make_them_familiar(world) -> None:
    """Thresholds measured on the very tracks that made the feature space would promise too much."""
    inside = world.known(60)
    model = fit_warnings(world.posterior, inside, world.strange(60))
    lowest = np.min([f.familiarity for f in findings_along(world, model, world.known(300))[2:]], axis=0)
    assert np.mean(lowest <= 0.1) < 0.25


def test_other_tracks_can_be_the_reference_of_what_is_known(world) -> None:
    reference = world.known(200)
    model = fit_warnings(world.posterior, world.known(60), world.strange(60), reference)
    again = fit_space(reference.features, reference.steps, reference.label)
    np.testing.assert_array_equal(model.space.centres, again.centres)
