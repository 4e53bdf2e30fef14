"""The regimes clean, hard and mixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import REGIMES, apply_plan, augmentation_plan, cut, degrade
from lla_fusion_ros.lab.datasets.crops import regime_plan
from lla_fusion_ros.types.errors import InputError
from support.tiny_datasets import make_trackset


@pytest.fixture(scope="module")
def crops():
    return cut(make_trackset(classes=3, tracks=20, frames=10, side=48), size=32, margin=0.1, border=8)


def plan_of(regime, tracks=200, frames=30, seed=0):
    track = np.repeat(np.arange(tracks), frames)
    return track, regime_plan(regime, track, np.random.default_rng(seed))


def test_clean_leaves_every_pixel_as_it_is(crops):
    np.testing.assert_array_equal(degrade(crops, "clean", 3).images, crops.without_border().images)


@pytest.mark.parametrize("regime", REGIMES)
def test_equal_seeds_give_equal_pixels(crops, regime):
    first, again = degrade(crops, regime, 7), degrade(crops, regime, 7)
    np.testing.assert_array_equal(first.images, again.images)
    assert first.size == 32
    assert first.border == 0
    np.testing.assert_array_equal(first.label, crops.label)


@pytest.mark.parametrize("regime", ["hard", "mixed"])
def test_other_seeds_give_other_pixels(crops, regime):
    assert (degrade(crops, regime, 1).images != degrade(crops, regime, 2).images).any()


def test_hard_stays_within_the_protocol():
    track, plan = plan_of("hard")
    pixels = plan.shift * 32
    assert 2.4 < np.abs(pixels).max() <= 2.5
    assert 0.115 < np.abs(plan.scale - 1).max() <= 0.12
    assert 7.9 < np.rad2deg(np.abs(plan.angle).max()) <= 8
    assert plan.blur.min() * 32 >= 0.7
    assert plan.blur.max() * 32 <= 1.5
    assert plan.noise.min() >= 0.015
    assert plan.noise.max() <= 0.05
    assert plan.gain.min() >= 0.15 * 0.8
    assert plan.gain.max() <= 0.5 * 1.2
    assert np.isnan(plan.cover).all()
    assert not plan.smear.any()


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
    assert not (covered & smeared).any()
    assert not (covered & away).any()
    assert not (smeared & away).any()
    for kind in (covered, smeared, away):
        assert kind.mean() == pytest.approx(0.4 / 3, abs=0.015)


def test_a_covered_crop_hides_half(crops):
    rng = np.random.default_rng(0)
    plan = regime_plan("mixed", np.arange(len(crops)), rng)
    changed = apply_plan(crops.images, crops.border, plan, rng)
    row = int(np.flatnonzero(~np.isnan(plan.cover))[0])
    same = np.abs(changed[row].astype(int) - crops.without_border().images[row]).max(axis=-1) < 60
    assert 0.3 < same.mean() < 0.9


def test_hard_crops_are_darker(crops):
    before, after = crops.without_border().images.mean(), degrade(crops, "hard", 0).images.mean()
    assert 0.15 * before < after < 0.6 * before


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


def test_augmentation_is_fresh_each_time_and_keeps_its_shares():
    rng = np.random.default_rng(0)
    first, second = augmentation_plan(3000, rng), augmentation_plan(3000, rng)
    assert (first.shift != second.shift).all()
    assert (first.noise > 0).mean() == pytest.approx(0.3, abs=0.03)  # only hard crops have noise
    assert (augmentation_plan(500, rng, clean=1.0, hard=0.0).noise == 0).all()


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


def test_a_cast_changes_each_colour_by_its_own_factor():
    image = np.full((1, 8, 8, 3), 100, np.uint8)
    tinted = apply_plan(image, 0, still_plan(cast=[1.2, 1.0, 0.5]), np.random.default_rng(0))
    np.testing.assert_array_equal(tinted[0, 0, 0], [120, 100, 50])


def test_a_faded_crop_keeps_its_light_and_loses_its_colour():
    image = np.full((1, 8, 8, 3), [200, 40, 40], np.uint8)
    grey = round(0.299 * 200 + 0.701 * 40)
    for share, expected in ((0.5, (200 + grey) / 2), (1.0, grey), (-0.25, 200 + 0.25 * (200 - grey))):
        faded = apply_plan(image, 0, still_plan(fade=share), np.random.default_rng(0))
        assert faded[0, 0, 0, 0] == pytest.approx(expected, abs=1)


def test_training_crops_fade_only_where_asked():
    rng = np.random.default_rng(0)
    assert (augmentation_plan(500, rng).fade == 0).all()
    assert (augmentation_plan(3000, rng, faded=0.4).fade != 0).mean() == pytest.approx(0.4, abs=0.03)


def test_a_relit_crop_keeps_its_object_and_gets_other_surroundings():
    image = np.full((1, 60, 60, 3), 100, np.uint8)
    crop = apply_plan(image, 10, still_plan(surroundings=0.5), np.random.default_rng(0))[0]
    distance = np.hypot(*(np.indices((40, 40)) - 19.5)) / 40
    assert (crop[distance < 0.42] == 100).all()
    assert (crop[distance > 0.5] == 50).all()
    assert (crop <= 100).all() and (crop >= 50).all()


def test_gamma_bends_the_brightness_between_black_and_white():
    image = np.array([0, 51, 255], np.uint8).reshape(1, 1, 3, 1).repeat(3, axis=1).repeat(3, axis=3)
    bent = apply_plan(image, 0, still_plan(gamma=2.0), np.random.default_rng(0))
    np.testing.assert_array_equal(bent[0, 0, :, 0], [0, round(255 * 0.2**2), 255])


def test_training_crops_are_relit_only_where_asked():
    rng = np.random.default_rng(0)
    plan = augmentation_plan(500, rng)
    assert (plan.gamma == 1).all() and (plan.surroundings == 1).all()
    plan = augmentation_plan(3000, rng, relit=0.4)
    assert (plan.surroundings != 1).mean() == pytest.approx(0.4, abs=0.03)
    np.testing.assert_array_equal(plan.surroundings != 1, plan.gamma != 1)


def test_only_training_crops_are_stretched_and_tinted():
    for regime in REGIMES:
        plan = plan_of(regime)[1]
        assert (plan.stretch == 1).all() and (plan.cast == 1).all()
    fresh = augmentation_plan(500, np.random.default_rng(0))
    assert (fresh.stretch != 1).all() and (fresh.cast != 1).all()


def test_unknown_regimes_and_wrong_shares_are_refused(crops):
    with pytest.raises(InputError, match="regime 'foggy' is unknown"):
        degrade(crops, "foggy", 0)
    with pytest.raises(InputError, match="sum to at most 1"):
        augmentation_plan(3, np.random.default_rng(0), clean=0.8, hard=0.3)
    with pytest.raises(InputError, match="do not fit"):
        apply_plan(crops.images, 40, plan_of("clean", 1, len(crops))[1], np.random.default_rng(0))
