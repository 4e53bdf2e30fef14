"""Sets and bounds: what is promised holds on objects that were not calibrated on."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.reliance.statements import (
    COVERAGES,
    GROUPS,
    Reliance,
    calibrate,
    clopper_pearson,
    conformal_threshold,
    error_bounds,
    groups_of,
)
from lla_fusion_ros.types.errors import BundleError, InputError

STEPS, CLASSES = 12, 5


def tracks(objects: int, seed: int):
    """Fused pmfs of objects of two regimes, the truth drawn so that worse pictures are less sure."""
    rng = np.random.default_rng(seed)
    label = np.repeat(rng.integers(0, CLASSES, objects), 2)
    regime, source = np.tile(["clean", "hard"], objects), np.repeat(np.arange(objects), 2)
    sure = np.where(regime == "clean", 4.0, 1.0)[:, None] + rng.normal(size=(2 * objects, 1))
    along = sure * np.sqrt(np.arange(1, STEPS + 1)) / 2 + rng.normal(size=(2 * objects, STEPS))
    scores = rng.normal(size=(2 * objects, STEPS, CLASSES))
    scores[np.arange(2 * objects)[:, None], np.arange(STEPS), label[:, None]] += along
    pmf = np.exp(scores)
    return pmf / pmf.sum(-1, keepdims=True), np.ones((2 * objects, STEPS), bool), label, regime, source


def test_sets_hold_the_true_class_in_every_frame_for_the_promised_share_of_objects() -> None:
    found = calibrate(*tracks(400, 0))
    pmf, _, label, regime, _ = tracks(1000, 1)
    views = np.tile(np.arange(1, STEPS + 1), (len(pmf), 1))
    for coverage in (0.8, 0.9, 0.95, 0.99):
        inside = found.sets(pmf.reshape(-1, CLASSES), views.ravel(), coverage).reshape(pmf.shape)
        held = np.take_along_axis(inside, label[:, None, None], axis=2)[..., 0]
        for name in ("clean", "hard"):
            for group in range(len(GROUPS)):
                frames = groups_of(views[0]) == group
                share = held[regime == name][:, frames].all(axis=1).mean()
                assert share >= coverage - 3.5 * np.sqrt(coverage * (1 - coverage) / 400)  # both are samples
        sizes = inside.sum(axis=2)
        assert sizes[regime == "clean"].mean() < sizes[regime == "hard"].mean()


def test_a_bin_that_equal_doubts_leave_empty_promises_nothing() -> None:
    doubt = np.array([0.1, 0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3])
    _, bounds = error_bounds(doubt, np.zeros(8, bool), np.arange(8))
    assert np.isfinite(bounds).all() and (np.diff(bounds) >= 0).all() and bounds[-1] == 1.0


def test_bounds_lie_above_the_error_and_rise_with_the_doubt() -> None:
    found = calibrate(*tracks(400, 0))
    pmf, _, label, _, _ = tracks(1000, 1)
    bound = found.upper_bounds(pmf.reshape(-1, CLASSES)).reshape(pmf.shape[:2])
    wrong = pmf.argmax(axis=2) != label[:, None]
    assert (np.diff(found.bounds) >= 0).all()
    exceeded = [wrong[bound == b].mean() > b for b in np.unique(found.bounds)]
    assert np.mean(exceeded) <= 0.2  # each at 95% confidence
    assert wrong.mean() < bound.mean() < wrong.mean() + 0.06


def test_the_versions_of_an_object_are_no_more_evidence() -> None:
    pmf, real, label, regime, source = tracks(60, 0)
    once = calibrate(pmf, real, label, regime, source)
    again = calibrate(*(np.concatenate([a] * 5) for a in (pmf, real, label, regime, source)))
    assert once.objects == again.objects == (60, 60, 60)
    np.testing.assert_allclose(once.bounds, again.bounds, rtol=0.1)  # edges may fall between copies
    np.testing.assert_array_equal(once.thresholds, again.thresholds)


def test_too_few_objects_promise_nothing_and_the_set_holds_every_class() -> None:
    assert np.isfinite(conformal_threshold(np.arange(19.0), 19, 0.95))
    assert np.isinf(conformal_threshold(np.arange(18.0), 18, 0.95))
    few = calibrate(*tracks(30, 0))
    assert [few.promised(group) for group in range(3)] == [0.95] * 3
    pmf = np.full((1, CLASSES), 0.001)
    pmf[0, 0] = 0.996
    assert few.sets(pmf, np.array([5]), 0.99).all()
    with pytest.raises(InputError, match="cannot be promised"):
        few.sets(pmf, np.array([5]), 0.999)
    assert COVERAGES[-1] == 0.995


def test_a_clopper_pearson_limit_is_what_the_binomial_says() -> None:
    assert clopper_pearson(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert clopper_pearson(3, 3) == clopper_pearson(0, 0) == 1.0


def test_it_is_stored_as_json_and_damage_is_refused() -> None:
    found = calibrate(*tracks(30, 0))
    again = Reliance.from_dict(found.as_dict())
    np.testing.assert_array_equal(again.thresholds, found.thresholds)
    for damage in ({"bounds": [2.0]}, {"edges": None}, {"groups": [1]}, {"thresholds": [[1.0]]}):
        with pytest.raises(BundleError, match="sets and bounds"):
            Reliance.from_dict({**found.as_dict(), **damage})
