"""Certainty that contradiction lowers, repetition cannot raise, and the number of objects bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along, views_of
from lla_fusion_ros.fusion.safety import least_lapse, opposed_views, safety_of
from lla_fusion_ros.types.pmf import entropy, softmax
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views
from support.tiny_posterior import make_posterior, make_views
from support.tracks_with_bad_frames import tracks_with_bad_frames

POSTERIOR = make_posterior()
VALUES = {"alpha": 0.8, "temperature": 0.5, "view_temperature": 1.3, "gamma": 0.9, "rarity": 0.4}
SURE = 12.0  # logits of a sure view


def of_size(view: Views, side: float) -> Views:
    return replace(view, size=np.full(len(view), side))


def fused(fuser, views) -> np.ndarray:
    state = fuser.initial(1)
    for view in views:
        state = fuser.update(state, view)
    return fuser.predict(state)[0]


def sure_view(posterior, label: int, seed: int) -> Views:
    view = make_views(posterior, 1, seed)
    logits = np.zeros_like(view.logits)
    logits[..., label] = SURE
    return Views(logits, view.features)


def test_it_is_its_formula_written_out_the_slow_way() -> None:
    sides = np.array([9.0, 20.0, np.nan, 400.0])
    near = (np.array([9.0, 20.0, 20.0, 200.0]) / 20) ** 1.5
    views = [of_size(make_views(POSTERIOR, 1, seed, scale=1.5), side) for seed, side in enumerate(sides)]
    logits = np.concatenate([view.logits for view in views])
    features = np.concatenate([view.features for view in views])
    inverse = np.linalg.inv(POSTERIOR.factors @ POSTERIOR.factors.swapaxes(-1, -2)).mean(axis=1)  # [c, D, D]
    pmf = softmax(logits / 1.3 + 0.4 * POSTERIOR.rarity).mean(axis=1)
    alone = np.exp(-0.9 * entropy(pmf))
    weight = near * alone

    def variance(phi):
        return np.einsum("...cd,cde,...ce->...", phi, inverse, phi)

    mean = np.einsum("t,tcd->cd", weight, features) / weight.sum()
    count = np.clip((weight @ variance(features)) / weight.sum() / variance(mean), 1, 4)
    pool = np.log(weight @ pmf / weight.sum()) * count**0.8 / 0.5
    tail = softmax(np.maximum(0.3 * (pool - pool.max()), -np.log(3)))
    even = (near * alone**0.25)[:, None] * pmf
    supporters = even.sum(axis=0) ** 2 / (even**2).sum(axis=0)
    second = even.sum(axis=0) / even.sum() * (1 - 0.999 / supporters)
    q = 0.8 * softmax(pool) + 0.2 * softmax(np.log(second) * count**0.8 / 0.5)
    expected = (1 - 2 * 0.01) * q + 2 * 0.01 * tail
    fuser = make_fuser("evidence_pool", POSTERIOR, {**VALUES, "doubt": 0.01, "spread": 0.3, "size": 1.5})
    np.testing.assert_allclose(fused(fuser, views), expected, rtol=1e-8)
    assert 1.02 < count < 4


def test_the_variance_it_compares_views_by_is_the_mean_laplace_variance() -> None:
    features = make_views(POSTERIOR, 6).features
    whitened = np.einsum("tcd,cde->tce", features, POSTERIOR.mean_whitening)
    own = (whitened**2).sum(axis=-1)
    expected = POSTERIOR.single_variance(features).mean(axis=-1) / POSTERIOR.temperature
    np.testing.assert_allclose(own, expected, rtol=1e-4)


def test_the_same_frame_counts_once_and_independent_ones_count_in_full() -> None:
    fuser = make_fuser("evidence_pool", POSTERIOR, VALUES)
    view = make_views(POSTERIOR, 1)
    state = fuser.initial(1)
    for _ in range(50):
        state = fuser.update(state, view)
    assert state.independent_views() == pytest.approx([1.0], abs=1e-9)
    np.testing.assert_allclose(fuser.predict(state), fuser.predict(fuser.update(fuser.initial(1), view)))
    opposite = Views(view.logits, -view.features)  # nothing of the mean is left: more than independent
    assert fuser.update(fuser.update(fuser.initial(1), view), opposite).independent_views() == [2.0]


@settings(max_examples=60, deadline=None)
@given(
    classes=st.integers(2, 60),
    doubt=st.floats(1e-6, 0.25),
    spread=st.floats(0.0, 1.0),
    logit=st.floats(0.0, 1e6),
    views=st.integers(1, 30),
)
def test_no_views_of_any_number_of_classes_leave_less_than_the_doubt(classes, doubt, spread, logit, views):
    posterior = make_posterior(1, classes, 3)
    fuser = make_fuser("evidence_pool", posterior, {"doubt": doubt, "spread": spread, "temperature": 0.02})
    one = make_views(posterior, 1)
    logits = np.zeros_like(one.logits)
    logits[..., 1] = logit
    pmf = fused(fuser, [Views(logits, one.features)] * views)
    assert pmf.max() <= 1.0 - doubt + 1e-12
    assert pmf.sum() == pytest.approx(1.0)


def test_contradicting_sure_views_stay_open_until_one_side_outweighs_the_other() -> None:
    fuser = make_fuser("evidence_pool", POSTERIOR)
    one, other = (sure_view(POSTERIOR, label, seed) for label, seed in ((0, 1), (2, 2)))
    for times in (1, 15):
        pmf = fused(fuser, [one, other] * times)
        assert pmf[0] == pytest.approx(pmf[2], abs=1e-6) and pmf[0] > 0.4
    more = fused(fuser, [one, *(sure_view(POSTERIOR, 2, seed) for seed in range(3, 9))])
    assert more.argmax() == 2 and more[2] > 0.9


@pytest.mark.parametrize("name", ["evidence_pool", "pool"])
def test_a_near_view_outweighs_many_far_ones_and_sizes_alike_change_nothing(name) -> None:
    fuser = make_fuser(name, POSTERIOR, {"size": 2.0})
    far = [sure_view(POSTERIOR, 0, seed) for seed in range(6)]
    near = sure_view(POSTERIOR, 2, 9)
    assert fused(fuser, [*far, near]).argmax() == 0
    assert fused(fuser, [*(of_size(view, 9.0) for view in far), of_size(near, 36.0)]).argmax() == 2
    alike = [of_size(view, 50.0) for view in [*far, near]]
    np.testing.assert_allclose(fused(fuser, alike), fused(fuser, [*far, near]), rtol=1e-9)


def test_contradictions_are_judged_as_if_seen_from_equally_near() -> None:
    posterior = make_posterior(2)
    logits, features, steps, label = tracks_with_bad_frames(posterior, seed=3)
    tracks = TrackViews.of_one_camera(2.5 * logits, features, steps, label)
    sides = np.random.default_rng(0).uniform(8, 80, logits.shape[:2])
    fuser = make_fuser("evidence_pool", posterior)
    found = [
        safety_of(fuser, some, views_of(posterior, some)) for some in (tracks, replace(tracks, size=sides))
    ]
    assert found[0].contradiction_high == found[1].contradiction_high
    assert found[0].odd_high == found[1].odd_high


def test_the_temperature_by_quality_is_fitted_where_it_is_asked_for() -> None:
    posterior = make_posterior(2)
    logits, features, steps, label = tracks_with_bad_frames(posterior, steps=3, seed=3)
    tracks = TrackViews.of_one_camera(logits, features, steps, label)
    plain, by_quality = (fusers()["evidence_pool"].fit(posterior, tracks, way) for way in (False, True))
    assert not np.any(plain["theta"]) and plain["by_quality"] == 0
    assert np.any(by_quality["theta"]) and by_quality["by_quality"] == 1
    assert plain["rarity"] == by_quality["rarity"] == 0
    assert plain["size"] == make_fuser("evidence_pool", posterior).value["size"]  # nothing tells of sizes
    assert fusers()["evidence_pool"].fit(posterior, tracks) == plain


def test_one_odd_frame_never_makes_its_class_sure_until_a_second_one_confirms_it() -> None:
    """Five views that are hardly sure of class 0, then sure ones of class 2."""
    fuser = make_fuser("evidence_pool", POSTERIOR, {"gamma": 3.0})
    unsure = [sure_view(POSTERIOR, 0, seed) for seed in range(5)]
    unsure = [Views(view.logits / 10, view.features) for view in unsure]
    odd = [sure_view(POSTERIOR, 2, seed) for seed in range(10, 15)]
    shown = [fused(fuser, [*unsure, *odd[:number]])[2] for number in range(6)]
    assert shown[0] < 0.2 and 0.5 < shown[1] < 0.85
    assert shown[1] < shown[2] and shown[5] > 0.95
    assert fused(fuser, odd[:1])[2] > 0.95  # a first view is not odd


def test_a_fit_keeps_contradictions_open_and_its_doubt_is_what_the_objects_support() -> None:
    posterior = make_posterior(2)
    logits, features, steps, label = tracks_with_bad_frames(posterior, steps=3, seed=3)
    tracks = TrackViews.of_one_camera(2.5 * logits, features, steps, label, np.arange(len(label)) // 2)
    values = fusers()["evidence_pool"].fit(posterior, tracks)
    fuser = make_fuser("evidence_pool", posterior, values)  # within all bounds
    assert values["doubt"] >= least_lapse(30)
    views = flat_views(posterior, tracks.logits, tracks.features)
    assert opposed_views(views, tracks) is not None, "the views of this test are sure enough to contradict"
    assert safety_of(fuser, tracks, views).faults() == ()


def test_each_fault_is_found_in_a_fuser_that_has_it() -> None:
    posterior = make_posterior(2)
    logits, features, steps, label = tracks_with_bad_frames(posterior, seed=3)
    tracks = TrackViews.of_one_camera(2.5 * logits, features, steps, label)
    views = flat_views(posterior, tracks.logits, tracks.features)

    def faults(name: str) -> str:
        return " ".join(safety_of(make_fuser(name, posterior), tracks, views).faults())

    assert "contradict" in faults("product") and "200 times" in faults("product")
    assert "contradict" not in faults("mean_pmf") and "200 times" not in faults("mean_pmf")
    assert "odd frame" in faults("last") and "odd frame" not in faults("mean_pmf")
    assert "the objects support" in faults("mean_pmf")


def test_where_no_view_is_sure_there_is_nothing_to_contradict() -> None:
    posterior = make_posterior(2)
    logits, features, steps, label = tracks_with_bad_frames(posterior)
    tracks = TrackViews.of_one_camera(0.1 * logits, features, steps, label)
    assert opposed_views(flat_views(posterior, tracks.logits, tracks.features), tracks) is None
    assert pmf_along(make_fuser("evidence_pool", posterior), flat_views(posterior, logits, features), 8).all()
