"""Two learned pools multiplied, and the share of objects that no number of views can speak for."""

import numpy as np
import pytest

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.dual_pool import least_lapse
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES, quality_features
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views
from support.tiny_bundle import tiny_bundle
from support.tracks_with_bad_frames import tracks_with_bad_frames

LINEAR = {"alpha": 0.2, "temperature": 0.6, "view_temperature": 1.7}
LOG = {"a": 0.4, "b": 0.3}
STANDARD = {"center": [0.5, 1.0, 0.2, -1.0, 0.1], "scale": [0.8, 2.0, 1.0, 1.5, 0.7]}
LINEAR_THETA, LOG_THETA = [-1.0, 0.2, 0.0, 0.7, -0.3], [-0.4, 0.1, 0.3, -0.2, 0.0]
VALUES = {"linear_theta": LINEAR_THETA, "log_theta": LOG_THETA, **STANDARD, **LINEAR, **LOG}


def pmfs(name, posterior, values, logits, features):
    fuser = make_fuser(name, posterior, values)
    return pmf_along(fuser, flat_views(posterior, logits, features), logits.shape[1])


def test_without_a_lapse_it_is_the_product_of_a_reliable_pool_and_a_reliability_fuser():
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    fused = pmfs("dual_pool", posterior, {**VALUES, "prior": 1.0, "lapse": 0.0}, logits, features)
    pool = {"theta": LINEAR_THETA, **STANDARD, **LINEAR, "prior": 1.0}
    plain = posterior.with_prior(1.0).with_temperature(1.0)  # `reliability` takes the posterior's own prior
    product = pmfs("reliable_pool", posterior, pool, logits, features) * pmfs(
        "reliability", plain, {"theta": LOG_THETA, **STANDARD, **LOG}, logits, features
    )
    np.testing.assert_allclose(fused, product / product.sum(axis=-1, keepdims=True), atol=1e-6)


def test_trust_makes_the_same_linear_pool_surer_where_its_views_are_good():
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    trust = [-0.5, 0.0, 0.2, 0.3, 0.0]
    only_linear = {**VALUES, "b": 4.0, "a": 0.0, "lapse": 0.0}
    sure = pmfs("dual_pool", posterior, {**only_linear, "trust": trust}, logits, features)
    flat = flat_views(posterior, logits, features)
    features_of = (quality_features(flat, prior=1.0) - np.array(STANDARD["center"])) / np.array(
        STANDARD["scale"]
    )
    shape = logits.shape[:2]
    weight = np.exp(features_of @ np.array(LINEAR_THETA)).reshape(shape)
    log_odds = np.clip(features_of @ np.array(trust), -3.0, 3.0).reshape(shape)
    expected = np.exp(np.cumsum(weight * log_odds, axis=1) / np.cumsum(weight, axis=1))
    # the log-linear part is the same in both: what is left of the scores is the linear one
    plain = pmfs("dual_pool", posterior, only_linear, logits, features)
    pool = {"theta": LINEAR_THETA, **STANDARD, **LINEAR, "prior": 1.0}
    linear = np.log(pmfs("reliable_pool", posterior, pool, logits, features))
    difference = np.log(sure) - np.log(plain) - (expected - 1.0)[..., None] * linear
    np.testing.assert_allclose(difference - difference.mean(axis=-1, keepdims=True), 0.0, atol=1e-6)
    assert expected.min() < 0.9 and expected.max() > 1.1


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_no_number_of_views_makes_it_surer_than_the_lapse_allows(spread):
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    surest = np.zeros_like(logits[:1, :1])
    surest[..., 1] = 80.0
    view = np.repeat(surest, 500, axis=1), np.repeat(features[:1, :1], 500, axis=1)
    pmf = pmfs("dual_pool", posterior, {**VALUES, "lapse": 0.02, "spread": spread}, *view)[0]
    classes = pmf.shape[-1]
    others = 1.0 - pmf[:, 1]
    if spread == 0.0:  # the lapse is then shared evenly by all classes
        np.testing.assert_allclose(others, 0.02 * (classes - 1) / classes, rtol=1e-6)
    assert (pmf.argmax(axis=-1) == 1).all()
    assert (np.diff(others) <= 1e-12).all()  # and each further view may only take from the doubt


def test_the_lapse_keeps_the_order_of_the_classes():
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    plain = pmfs("dual_pool", posterior, {**VALUES, "lapse": 0.0}, logits, features)
    tailed = pmfs("dual_pool", posterior, {**VALUES, "lapse": 0.2, "spread": 0.3}, logits, features)
    np.testing.assert_array_equal(plain.argsort(axis=-1), tailed.argsort(axis=-1))


def test_the_fitted_lapse_is_never_below_half_an_object_and_counts_objects_not_tracks():
    posterior = tiny_bundle().posterior()
    logits, features, steps, label = (part[:30] for part in tracks_with_bad_frames(posterior, seed=1))
    once = TrackViews.of_one_camera(logits, features, steps, label)
    objects = np.arange(len(label)) // 3  # each under three regimes
    thrice = TrackViews.of_one_camera(logits, features, steps, label, objects)
    assert once.objects == len(label)
    assert thrice.objects == len(np.unique(objects))
    assert thrice.take(np.arange(6)).objects == 2
    for tracks in (once, thrice):
        values = fusers()["dual_pool"].fit(posterior, tracks)
        assert least_lapse(tracks.objects) <= values["lapse"] <= 0.5
        make_fuser("dual_pool", posterior, values)  # within all bounds


def test_rarity_corrects_the_logits_of_every_view_before_they_are_pooled():
    """With equal weights both pools see nothing but logits: corrected by the fuser, or by hand beforehand."""
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    equal = {**VALUES, "linear_theta": [0.0] * 5, "log_theta": [0.0] * 5, "view_temperature": 1.0}
    rare = {**equal, "linear_rarity": 0.7, "log_rarity": 0.7}
    assert np.ptp(posterior.rarity) > 1.0
    by_fuser = pmfs("dual_pool", posterior, rare, logits, features)
    by_hand = pmfs("dual_pool", posterior, equal, logits + 0.7 * posterior.rarity, features)
    np.testing.assert_allclose(by_fuser, by_hand, atol=1e-6)
    assert np.abs(by_fuser - pmfs("dual_pool", posterior, equal, logits, features)).max() > 0.01
    one_by_one = make_fuser("dual_pool", posterior, rare)  # as on a road: no view yet, then one
    state = one_by_one.initial(len(logits))
    np.testing.assert_allclose(one_by_one.predict(state), 1.0 / logits.shape[-1])
    state = one_by_one.update(state, Views(logits[:, 0], features[:, 0]))
    np.testing.assert_allclose(one_by_one.predict(state), by_fuser[:, 0], atol=1e-9)


def test_a_fit_finds_that_networks_name_rare_classes_too_seldom():
    posterior = tiny_bundle().posterior()
    logits, features, steps, label = tracks_with_bad_frames(posterior, seed=2)
    biased = logits - 2.0 * posterior.rarity.astype(np.float32)  # what the networks wrongly take off
    tracks = TrackViews.of_one_camera(biased, features, steps, label)
    values = fusers()["dual_pool"].fit(posterior, tracks)
    plain = {**values, "linear_rarity": 0.0, "log_rarity": 0.0}
    corrected, before = (
        np.log(pmfs("dual_pool", posterior, own, biased, features)[:, -1]) for own in (values, plain)
    )
    gain = (corrected - before).mean(axis=0)  # what each class gets from the correction
    assert np.corrcoef(gain, posterior.rarity)[0, 1] > 0.9
    rows = np.arange(len(label))
    assert -corrected[rows, label].mean() < -before[rows, label].mean()


def test_a_fit_leaves_the_variance_out_and_a_bundle_with_its_coefficient_still_uses_it():
    posterior = tiny_bundle().posterior()
    logits, features, steps, label = tracks_with_bad_frames(posterior, seed=1)
    values = fusers()["dual_pool"].fit(posterior, TrackViews.of_one_camera(logits, features, steps, label))
    variance = QUALITY_FEATURES.index("log_variance")
    assert all(values[key][variance] == 0.0 for key in ("linear_theta", "log_theta", "trust"))
    for given, matters in ((values, False), (VALUES, True)):
        one, other = (
            pmfs("dual_pool", posterior, {**given, "prior": prior}, logits, features) for prior in (0.1, 10.0)
        )
        assert (np.abs(one - other).max() > 1e-6) == matters


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"linear_theta": [1.0]}, "linear_theta"),
        ({"trust": [1.0, 2.0]}, "trust"),
        ({"scale": [1.0, 0.0, 1.0, 1.0, 1.0]}, "scale"),
        ({"theta": 1.0}, "theta"),
        ({"lapse": 0.9}, "lapse"),
        ({"log_rarity": 11.0}, "log_rarity"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(values, named):
    with pytest.raises(InputError, match=named):
        make_fuser("dual_pool", tiny_bundle().posterior(), values)
