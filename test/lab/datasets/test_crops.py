"""From tracks to crops, and the regimes clean, hard and mixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import (
    APPROACH,
    FITTED_REGIMES,
    REGIMES,
    apply_plan,
    augmentation_plan,
    cut,
    degrade,
)
from lla_fusion_ros.lab.datasets.crops import regime_plan
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet
from support.tiny_datasets import make_trackset


@pytest.fixture(scope="module")
def crops():
    return cut(make_trackset(classes=3, tracks=20, frames=10, side=48), size=32, margin=0.1, border=8)


def plan_of(regime, tracks=200, frames=30, seed=0):
    track = np.repeat(np.arange(tracks), frames)
    return track, regime_plan(regime, track, np.random.default_rng(seed))


def test_a_crop_of_a_whole_image_at_its_own_size_is_that_image():
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    track = Track("a", 0, (Frame(image, (0, 0, 16, 16)),))
    crops = cut(TrackSet("one", ("a",), (track,), ""), size=16, margin=0.0)
    np.testing.assert_array_equal(crops.images[0], image)


def test_crops_say_where_they_come_from():
    trackset = make_trackset(classes=2, tracks=2, frames=3)
    crops = cut(trackset, size=8, margin=0.1)
    assert crops.images.shape == (12, 8, 8, 3)
    assert crops.track.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert crops.frame.tolist() == [0, 1, 2] * 4
    assert crops.camera.tolist() == [0, 1, 0] * 4
    assert crops.label.tolist() == [0] * 6 + [1] * 6


def test_crops_know_the_side_of_their_box():
    frame = Frame(np.zeros((40, 40, 3), np.uint8), (10, 10, 19, 26))
    crops = cut(TrackSet("one", ("a",), (Track("a", 0, (frame,)),), ""), size=32, margin=0.1)
    assert crops.box_side.tolist() == [12]


def test_the_border_adds_surroundings_and_leaves_the_crop_as_it_was():
    trackset = make_trackset()
    plain = cut(trackset, size=20, margin=0.1)
    bordered = cut(trackset, size=20, margin=0.1, border=5)
    assert bordered.images.shape[1] == 30
    assert bordered.size == 20
    inner = bordered.images[:, 5:-5, 5:-5]
    # Sampling is exact to 1/32 pixel, and edges of the test image jump by up to 196.
    assert np.abs(inner.astype(int) - plain.images).max() <= 196 / 32 + 1


@pytest.mark.parametrize("wrong", [{"size": 0}, {"border": -1}, {"margin": -0.5}, {"margin": float("nan")}])
def test_impossible_crops_are_refused(wrong):
    with pytest.raises(InputError, match="expected size"):
        cut(make_trackset(frames=1), **{"size": 8, "margin": 0.1, "border": 0, **wrong})


def test_clean_leaves_every_pixel_as_it_is(crops):
    np.testing.assert_array_equal(degrade(crops, "clean", 3).images, crops.images[:, 8:-8, 8:-8])


def test_hard_stays_within_the_protocol():
    _, plan = plan_of("hard")
    pixels = plan.shift * 32
    assert 2.4 < np.abs(pixels).max() <= 2.5
    assert 0.115 < np.abs(plan.scale - 1).max() <= 0.12
    assert 7.9 < np.rad2deg(np.abs(plan.angle).max()) <= 8
    for values, low, high in ((plan.blur * 32, 0.7, 1.5), (plan.noise, 0.015, 0.05), (plan.gain, 0.12, 0.6)):
        assert low <= values.min() and values.max() <= high
    assert np.isnan(plan.cover).all() and not plan.smear.any()


def test_blur_belongs_to_the_track_and_gain_varies_about_the_tracks_own():
    track, plan = plan_of("hard", tracks=50)
    for index in range(50):
        assert len(set(plan.blur[track == index])) == 1
        gains = plan.gain[track == index]
        assert 1 < gains.max() / gains.min() <= 1.2 / 0.8 + 1e-9


def test_mixed_spoils_two_frames_in_five_in_three_ways():
    _, plan = plan_of("mixed", tracks=400)
    covered = ~np.isnan(plan.cover)
    smeared = plan.smear > 0
    away = np.hypot(*plan.shift.T) > 0.3
    assert (covered.astype(int) + smeared + away).max() == 1
    for kind in (covered, smeared, away):
        assert kind.mean() == pytest.approx(0.4 / 3, abs=0.015)


def test_a_covered_crop_hides_half(crops):
    rng = np.random.default_rng(0)
    plan = regime_plan("mixed", np.arange(len(crops)), rng)
    changed = apply_plan(crops.images, crops.border, plan, rng)
    row = int(np.flatnonzero(~np.isnan(plan.cover))[0])
    same = np.abs(changed[row].astype(int) - crops.images[:, 8:-8, 8:-8][row]).max(axis=-1) < 60
    assert 0.3 < same.mean() < 0.9


def test_moving_a_crop_shows_the_real_surroundings():
    trackset = make_trackset(classes=2, tracks=1, frames=1, side=48)
    bordered = cut(trackset, size=24, margin=0.0, border=12)
    plan = regime_plan("clean", bordered.track, np.random.default_rng(0))
    plan.shift[:] = 0.25, 0.0  # six pixels to the right
    moved = apply_plan(bordered.images, bordered.border, plan, np.random.default_rng(0))
    np.testing.assert_array_equal(moved, bordered.images[:, 12:36, 18:42])


def test_a_regime_means_the_same_at_every_crop_size():
    small, large = (
        degrade(cut(make_trackset(side=48), size, 0.1, size // 4), "hard", 5).images.mean(axis=(1, 2, 3))
        for size in (24, 48)
    )
    assert np.abs(small - large).max() < 4


def still_plan(**changes):
    _, plan = plan_of("clean", 1, 1)
    return replace(plan, **{name: np.array([value]) for name, value in changes.items()})


def test_a_stretched_crop_shows_its_middle_wider_and_lower():
    image = np.zeros((1, 41, 41, 3), np.uint8)
    image[:, 16:25, 16:25] = 255  # a square of 9 pixels in the middle
    stretched = apply_plan(image, 0, still_plan(stretch=0.5), np.random.default_rng(0))[0, :, :, 0] > 127
    assert stretched[20].sum() == pytest.approx(9 * np.sqrt(2), abs=1)  # half as wide a view: twice as wide
    assert stretched[:, 20].sum() == pytest.approx(9 / np.sqrt(2), abs=1)
    assert stretched[20, 20]
    np.testing.assert_array_equal(stretched, stretched[::-1, ::-1])


def test_a_relit_crop_keeps_its_object_and_gets_other_surroundings():
    image = np.full((1, 60, 60, 3), 100, np.uint8)
    crop = apply_plan(image, 10, still_plan(surroundings=0.5), np.random.default_rng(0))[0]
    distance = np.hypot(*(np.indices((40, 40)) - 19.5)) / 40
    assert (crop[distance < 0.42] == 100).all()
    assert (crop[distance > 0.5] == 50).all()
    assert (crop <= 100).all() and (crop >= 50).all()


def test_unknown_regimes_and_wrong_shares_are_refused(crops):
    with pytest.raises(InputError, match="regime 'foggy' is unknown"):
        degrade(crops, "foggy", 0)
    with pytest.raises(InputError, match="sum to at most 1"):
        augmentation_plan(3, np.random.default_rng(0), clean=0.8, hard=0.3)
    with pytest.raises(InputError, match="do not fit"):
        apply_plan(crops.images, 40, plan_of("clean", 1, len(crops))[1], np.random.default_rng(0))


def test_an_approach_begins_far_away_and_ends_with_the_pixels_that_are_there(crops):
    near = degrade(crops, APPROACH, 0)
    sides = near.box_side.reshape(-1, 10)
    np.testing.assert_allclose(sides[:, 0], 8.0)
    np.testing.assert_allclose(np.diff(1 / sides, axis=1), (1 / 24 - 1 / 8) / 9, rtol=1e-5)  # an even speed
    assert (near.size, near.border) == (32, 0)
    detail = (
        np.abs(np.diff(near.images.astype(int), 2, axis=2)).mean(axis=(1, 2, 3)).reshape(-1, 10).mean(axis=0)
    )
    assert detail[0] < 0.7 * detail[-1]
    single = degrade(crops.take(crops.frame == 0), APPROACH, 0)
    np.testing.assert_array_equal(single.box_side, crops.box_side[crops.frame == 0])


@pytest.mark.parametrize("regime", FITTED_REGIMES)
def test_equal_seeds_give_equal_pixels_and_others_do_not(crops, regime):
    first, again, other = (degrade(crops, regime, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.images, again.images)
    assert (first.images != other.images).any() == (regime != "clean")
    assert (first.size, first.border) == (32, 0) and (first.label == crops.label).all()


def test_training_crops_are_fresh_each_time_and_changed_as_often_as_asked():
    rng = np.random.default_rng(0)
    first, second = augmentation_plan(3000, rng), augmentation_plan(3000, rng, faded=0.4, relit=0.3)
    assert (first.shift != second.shift).all()
    assert (first.noise > 0).mean() == pytest.approx(0.3, abs=0.03)  # only hard crops have noise
    assert (augmentation_plan(500, rng, clean=1.0, hard=0.0).noise == 0).all()
    assert (first.fade == 0).all() and (first.gamma == 1).all() and (first.surroundings == 1).all()
    assert (second.fade != 0).mean() == pytest.approx(0.4, abs=0.03)
    assert (second.surroundings != 1).mean() == pytest.approx(0.3, abs=0.03)
    np.testing.assert_array_equal(second.surroundings != 1, second.gamma != 1)
    assert (first.stretch != 1).all() and (first.cast != 1).all()
    for regime in REGIMES:
        plan = plan_of(regime, tracks=3)[1]
        assert (plan.stretch == 1).all() and (plan.cast == 1).all()


@pytest.mark.parametrize(
    ("pixel", "change", "expected"),
    [
        ((100, 100, 100), {"cast": [1.2, 1.0, 0.5]}, (120, 100, 50)),
        ((200, 40, 40), {"fade": 0.5}, (144, 64, 64)),  # halfway to its grey, 88
        ((200, 40, 40), {"fade": 1.0}, (88, 88, 88)),
        ((200, 40, 40), {"fade": -0.25}, (228, 28, 28)),
        ((0, 51, 255), {"gamma": 2.0}, (0, 10, 255)),
    ],
)
def test_colours_change_as_planned(pixel, change, expected):
    image = np.full((1, 8, 8, 3), pixel, np.uint8)
    changed = apply_plan(image, 0, still_plan(**change), np.random.default_rng(0))
    np.testing.assert_allclose(changed[0, 0, 0], expected, atol=1)
