"""Fitting the warnings: stated rates on fresh tracks, and what the parts are fitted on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import QUALITIES
from lla_fusion_ros.warnings.fit import Seen, fit_warnings, fit_warnings_of, known_space
from lla_fusion_ros.warnings.fit_space import fit_space
from lla_fusion_ros.warnings.fit_unknown import RIDGE, TELLING, ScoreRows, fit_logistic, fit_unknown
from lla_fusion_ros.warnings.model import SCORES
from lla_fusion_ros.warnings.result import Scores
from lla_fusion_ros.warnings.scores import SETTLED
from support.feature_world import FeatureWorld
from support.warned_tracks import scores_along


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


def lowest(found: list[Scores], reason: int) -> np.ndarray:
    """The smallest p-value of each track."""
    return np.min([scores.p_values[:, reason] for scores in found], axis=0)


def test_false_alarms_on_fresh_tracks_are_near_the_stated_rate(world) -> None:
    model = fit_warnings(world.posterior, world.known(150), world.strange(80))
    found = scores_along(world, model, world.known(300))
    assert np.mean(lowest(found[2:], 0) <= 0.05) < 0.15
    assert np.mean(lowest(found, 1) <= 0.01) < 0.05


def test_too_few_tracks_are_refused(world) -> None:
    with pytest.raises(InputError, match="at least 10 validation tracks"):
        fit_warnings(world.posterior, world.known(5), world.strange(20))


def test_single_image_tracks_can_be_fitted_and_never_show_a_switch(world) -> None:
    model = fit_warnings(world.posterior, world.known(60, steps=1), world.strange(40, steps=1))
    found = scores_along(world, model, world.known(20, steps=12))
    assert (lowest(found, 1) == 1.0).all()


def test_tracks_of_several_cameras_give_the_camera_threshold(world) -> None:
    model = fit_warnings(world.posterior, world.known(60, cameras=2), world.strange(40))
    assert model.camera.tracks == 60


def test_the_logistic_fit_equals_the_reference_implementation() -> None:
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1], [80, 50])
    rows, weight = rng.normal(size=(130, 3)) + 0.7 * target[:, None], rng.dirichlet(np.ones(130))
    intercept, *coefficients = fit_logistic(rows, target, weight)
    reference = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=1000).fit(rows, target, weight)
    np.testing.assert_allclose(coefficients, reference.coef_[0], rtol=1e-4)
    assert intercept == pytest.approx(reference.intercept_[0], rel=1e-4)


def test_features_of_the_tracks_themselves_do_not_make_them_familiar(world) -> None:
    """Thresholds measured on the very tracks that made the feature space would promise too much."""
    inside = world.known(60)
    model = fit_warnings(world.posterior, inside, world.strange(60))
    found = scores_along(world, model, world.known(300))
    assert np.mean(lowest(found[2:], 0) <= 0.1) < 0.25


def test_other_tracks_can_be_the_reference_of_what_is_known(world) -> None:
    reference = world.known(200)
    model = fit_warnings(world.posterior, world.known(60), world.strange(60), reference)
    again = fit_space(reference.features, reference.steps, reference.label)
    np.testing.assert_array_equal(model.space.centres, again.centres)


def test_a_track_is_compared_with_the_mean_of_each_class(world) -> None:
    known = world.known(60)
    space = fit_space(known.features, known.steps, known.label)
    assert len(space.bank) == len(np.unique(known.label)) and space.neighbours == 1
    np.testing.assert_allclose(np.linalg.norm(space.bank, axis=1), 1.0, atol=1e-3)
    old = replace(space, bank=np.repeat(space.bank, 100, axis=0))  # as in bundles made before
    assert old.neighbours == 5


def in_the_dark(world, tracks, darkness: float, seed: int = 0):
    """Tracks that look half like strangers in dark pictures."""
    rng, other, share = np.random.default_rng(seed), world.strange(len(tracks)), 0.4 * darkness
    quality = rng.normal(0, 0.1, (*tracks.logits.shape[:2], len(QUALITIES))).astype(np.float32)
    quality[..., 0] -= darkness
    return replace(
        tracks,
        logits=(1 - share) * tracks.logits + share * other.logits,
        features=(1 - share) * tracks.features + share * other.features,
        quality=quality,
        regime=np.full(len(tracks), f"darkness {darkness}"),
    )


def test_what_is_odd_in_pictures_too_bad_to_tell_is_not_called_unknown(world) -> None:
    inside, dark, night = (in_the_dark(world, world.known(150), darkness) for darkness in (0.0, 0.5, 1.5))
    outside = in_the_dark(world, world.strange(80), 0.0)
    model = fit_warnings(world.posterior, inside, outside, conditions=dark, unreadable=night)
    seen = in_the_dark(world, world.known(100), 1.5, 1)
    found = scores_along(world, model, seen)[2:]
    assert np.mean(lowest(found, 0) <= 0.02) <= 0.05 and np.mean(lowest(found, 3) <= 0.02) > 0.5
    blind = scores_along(world, model, replace(seen, quality=None))[2:]
    np.testing.assert_array_equal(lowest(blind, 0), lowest(blind, 3))  # no pictures: none too bad
    strangers = scores_along(world, model, in_the_dark(world, world.strange(60), 0.0, 1))[2:]
    assert np.mean(lowest(strangers, 0) <= 0.02) > 0.8


def at_size(tracks, side: float):
    return replace(tracks, size=np.full(tracks.logits.shape[:2], side, np.float32))


def test_far_away_known_objects_may_look_odder_and_below_the_fitted_sizes_nobody_can_tell(world) -> None:
    inside, dark, night = (in_the_dark(world, world.known(150), darkness) for darkness in (0.0, 0.5, 1.5))
    outside, far = in_the_dark(world, world.strange(80), 0.0), in_the_dark(world, world.known(150), 0.9)
    plain = replace(far, quality=inside.quality, regime=np.full(150, "far"))  # odd, in good pictures
    model = fit_warnings(
        world.posterior, inside, outside, conditions=dark, unreadable=night, distant=at_size(plain, 10.0)
    )
    assert model.usual is not None and model.usual.distance.rise > 0
    assert model.usual.distance.smallest == pytest.approx(10.0)
    fresh = replace(in_the_dark(world, world.known(300), 0.9, 1), quality=None)
    fresh = replace(fresh, quality=np.tile(inside.quality, (2, 1, 1)))

    def called(tracks, reason: int) -> float:
        return float(np.mean(lowest(scores_along(world, model, tracks)[2:], reason) <= 0.02))

    assert called(at_size(fresh, 10.5), 0) <= 0.1 < called(at_size(fresh, 40.0), 0)
    log_size = np.log([10.0, 10.0, 20.0, 40.0])
    added = model.usual.distance(log_size, np.array([3.0, 30.0, 3.0, 3.0]))
    assert added[0] > added[1] > 0 and added[0] > added[2] > added[3] == 0.0
    assert called(at_size(fresh, 40.0), 0) == called(fresh, 0)  # nothing is known of the size
    assert called(at_size(fresh, 6.0), 0) == 0.0 and called(at_size(fresh, 6.0), 3) == 1.0


def test_thresholds_follow_the_quality_of_the_pictures(world) -> None:
    """Known objects in poor pictures need not make the warning blind in good ones."""
    inside, dark, night = (in_the_dark(world, world.known(150), darkness) for darkness in (0.0, 0.7, 1.5))
    outside = in_the_dark(world, world.strange(80), 0.0)
    model = fit_warnings(world.posterior, inside, outside, conditions=dark, unreadable=night)
    # strangers that look half like known objects, in good pictures
    faint = replace(in_the_dark(world, world.known(100), 0.8, 1), quality=inside.quality[:100])
    found = scores_along(world, model, faint)[2:]
    assert np.mean(lowest(found, 0) <= 0.02) > np.mean(lowest(found, 3) <= 0.02) + 0.15
    for darkness in (0.0, 0.7):
        known = scores_along(world, model, in_the_dark(world, world.known(300), darkness, 2))[2:]
        assert np.mean(lowest(known, 0) <= 0.02) <= 0.1, darkness


def test_ensembles_that_number_their_features_differently_are_fitted_together(world) -> None:
    """Each measures by its own features: turning those of one of them around changes nothing."""
    halves = [(world.known(60), world.strange(40), world.known(80)) for _ in range(2)]

    def turned(posterior, tracks):
        order = np.r_[
            posterior.features - 2 : -1 : -1, posterior.features - 1
        ]  # the last belongs to the bias
        blocks = (posterior.factors @ posterior.factors.swapaxes(-1, -2))[..., order, :][..., order]
        return replace(posterior, factors=np.linalg.cholesky(blocks)), [
            replace(each, features=each.features[..., order]) for each in tracks
        ]

    plain = [Seen(world.posterior, *half) for half in halves]
    other, tracks = turned(world.posterior, halves[1])
    space = known_space(halves[0][2])
    models = [fit_warnings_of(seen, space) for seen in (plain, [plain[0], Seen(other, *tracks)])]
    for name in ("unknown", "camera"):
        alarms = [getattr(getattr(model, name), "alarm", getattr(model, name)) for model in models]
        np.testing.assert_allclose(alarms[0].threshold(0.05), alarms[1].threshold(0.05), rtol=1e-3)
    assert models[0].unknown.alarm.tracks == 120


def rows_along(objects: int, lengths: tuple[int, ...], level: float, seed: int) -> ScoreRows:
    """Scores around a level, as means of more and more views are."""
    rng, views = np.random.default_rng(seed), np.tile(lengths, objects)
    values = np.zeros((len(views), len(SCORES)))
    for name in TELLING:
        values[:, SCORES.index(name)] = level + rng.normal(size=len(views)) / np.sqrt(views)
    values[:, SCORES.index("length")] = np.log(np.minimum(views, SETTLED))
    track, group = np.repeat(np.arange(objects), len(lengths)), np.full(len(views), "clean")
    unknown = np.full((len(views), len(QUALITIES)), np.nan)
    return ScoreRows(values, unknown, unknown[:, 0], track, views, group, track)


def test_the_threshold_follows_known_tracks_as_they_settle() -> None:
    lengths = (3, 5, 7, 10)
    known, strange, fresh = (
        rows_along(count, lengths, level, seed)
        for seed, (count, level) in enumerate([(3000, 0), (200, 0.9), (3000, 0)])
    )
    unknown, _, _ = fit_unknown(known, strange, None)
    beyond = unknown(fresh.values) > unknown.alarm.threshold(0.02)
    shares = [beyond[fresh.length == length].mean() for length in lengths]
    assert max(shares) < 0.03
    assert 0.01 < np.bincount(fresh.track, beyond).astype(bool).mean() < 0.03
    coefficients = np.where(np.array(SCORES) == "length", 0.0, unknown.coefficients)
    plain = replace(unknown, coefficients=coefficients)
    plain = replace(plain, alarm=known.alarm(plain(known.values)))
    late = strange.values[strange.length == 10]
    found, found_plain = ((each(late) > each.alarm.threshold(0.02)).mean() for each in (unknown, plain))
    assert found > found_plain + 0.1


def test_tracks_of_a_few_views_have_no_threshold_that_follows_them() -> None:
    known, strange = rows_along(100, (1, 2, 3), 0.0, 0), rows_along(100, (1, 2, 3), 2.0, 1)
    unknown, _, _ = fit_unknown(known, strange, None)
    assert unknown.coefficients[SCORES.index("length")] == 0.0
