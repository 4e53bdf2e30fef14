"""Drives: what the cameras see, what the tracker says, what is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.signworld import (
    CLASS_NAMES,
    OUTSIDE_KINDS,
    Blackout,
    Conditions,
    Drive,
    DriveSettings,
    IdentitySwitch,
    RoadsideObject,
    Stretch,
    demo_drive,
)
from lla_fusion_ros.signworld.drive_settings import TWO_CAMERAS
from lla_fusion_ros.signworld.signs import FALSE_DETECTION
from lla_fusion_ros.types.errors import InputError

SIGNS = (
    RoadsideObject("a", "speed limit 50", (5.0, 2.3, 25.0)),
    RoadsideObject("b", "give way", (-5.0, 2.3, 25.0)),
    RoadsideObject("c", "star board", (5.5, 2.3, 34.0)),
)
# Half the size of the real ones, for quick tests.
CAMERAS = tuple(replace(camera, width=320, height=240, focal=camera.focal / 2) for camera in TWO_CAMERAS)
SETTINGS = DriveSettings(
    seed=3, look=0, duration=1.0, cameras=CAMERAS, objects=SIGNS, occluded=(), min_box=5.0
)


def row(frame, name):
    return frame.names.index(name)


def test_equal_seeds_give_equal_drives_and_another_gives_another():
    first, again = (list(Drive(replace(SETTINGS, duration=0.2))) for _ in range(2))
    assert len(first) == len(again) == 4
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_array_equal(one.boxes, other.boxes)
        assert (one.ids, one.stamp, one.camera) == (other.ids, other.stamp, other.camera)
    assert (Drive(replace(SETTINGS, seed=4)).frame(0, 0).image != first[0].image).any()


def test_frames_come_from_all_cameras_in_the_order_of_their_stamps():
    drive = Drive(replace(SETTINGS, duration=0.4))
    frames = list(drive)
    assert [frame.camera for frame in frames] == ["left", "right"] * 4
    stamps = [frame.stamp for frame in frames]
    assert stamps == sorted(set(stamps))
    assert stamps[2] - stamps[0] == 100_000_000
    assert len(drive) == 8


def test_the_truth_says_what_is_in_each_box():
    frame = Drive(SETTINGS).frame(0, 0)
    assert frame.image.shape == (240, 320, 3) and frame.image.dtype == np.uint8
    assert set(frame.ids) == {"a", "b", "c"}
    for name, label in zip(frame.names, frame.labels, strict=True):
        assert label == (CLASS_NAMES.index(name) if name in CLASS_NAMES else -1)
    assert frame.labels[row(frame, "star board")] == -1


def test_boxes_lie_on_their_signs():
    # Without a sign, the picture changes inside its box (and along its pole), and nearly nowhere else.
    settings = replace(SETTINGS, conditions=Conditions(noise=0.0, jitter=0.0, blur=0.0))
    with_sign = Drive(settings).frame(0, 0)
    without = Drive(replace(settings, objects=SIGNS[1:])).frame(0, 0)
    changed = (with_sign.image != without.image).any(axis=-1)
    cx, cy, w, h = with_sign.boxes[row(with_sign, "speed limit 50")]
    y, x = np.nonzero(changed[: int(cy + h / 2)])  # above the pole
    assert x.min() == pytest.approx(cx - w / 2, abs=1.5)
    assert x.max() == pytest.approx(cx + w / 2, abs=1.5)
    assert y.min() == pytest.approx(cy - h / 2, abs=1.5)


def test_a_sign_grows_and_moves_outwards_as_the_vehicle_comes_nearer():
    drive = Drive(SETTINGS)
    boxes = [drive.frame(step, 1).boxes[0] for step in (0, 5, 9)]
    widths = [box[2] for box in boxes]
    assert widths == sorted(widths)
    assert boxes[0][0] < boxes[2][0]


def test_the_cameras_differ_in_view_and_exposure():
    drive = Drive(SETTINGS)
    left, right = drive.frame(0, 0), drive.frame(0, 1)
    assert abs(left.boxes[0, 0] - right.boxes[0, 0]) > 10
    assert left.image.mean() > 1.15 * right.image.mean()


def test_stretches_change_the_light_and_fade_in_and_out():
    dusk = Stretch(0.4, 0.6, Conditions(light=0.3, noise=0.03), ramp=0.2)
    drive = Drive(replace(SETTINGS, stretches=(dusk,)))
    brightness = [drive.frame(step, 0).image.mean() for step in (0, 3, 5, 9)]
    assert brightness[2] < 0.45 * brightness[0]
    assert brightness[2] < brightness[1] < brightness[0]
    assert brightness[3] > 0.9 * brightness[0]
    assert drive.conditions(0.5) == dusk.conditions


@pytest.mark.parametrize(
    "weather", [{"rain": 1.0}, {"glare": 1.0}, {"blur": 2.0}, {"smear": 6.0}, {"noise": 0.05}]
)
def test_each_kind_of_weather_shows(weather):
    clear = Conditions(noise=0.0, blur=0.0)
    before = Drive(replace(SETTINGS, conditions=clear)).frame(0, 0).image
    after = Drive(replace(SETTINGS, conditions=replace(clear, **weather))).frame(0, 0).image
    assert np.abs(before.astype(int) - after).mean() > 1


def test_an_identity_switch_swaps_two_ids_and_says_so():
    drive = Drive(replace(SETTINGS, switches=(IdentitySwitch(0.5, "a", "b"),)))
    before, after = drive.frame(4, 0), drive.frame(5, 0)
    assert before.ids[row(before, "speed limit 50")] == "a"
    assert not before.switched.any()
    assert after.ids[row(after, "speed limit 50")] == "b"
    assert after.ids[row(after, "give way")] == "a"
    assert after.switched[row(after, "give way")]
    assert not after.switched[row(after, "star board")]


def test_a_silent_camera_sends_nothing_and_a_dark_one_still_has_boxes():
    drive = Drive(replace(SETTINGS, blackouts=(Blackout("right", 0.3, 0.6),)))
    frames = list(drive)
    assert len(frames) == len(drive) == 17
    silent = {frame.stamp - drive.settings.start for frame in frames if frame.camera == "right"}
    assert not any(0.3e9 <= stamp < 0.6e9 for stamp in silent)
    assert not any(frame.dark for frame in frames)
    dark = Drive(replace(SETTINGS, blackouts=(Blackout("right", 0.3, 0.6, kind="dark"),)))
    frame = dark.frame(4, 1)
    assert frame.dark and frame.image.mean() < 12 and len(frame.ids) == len(frame.boxes) > 0
    assert len(dark) == 20


def test_jitter_moves_boxes_by_the_share_asked_for():
    still = Drive(replace(SETTINGS, conditions=Conditions(jitter=0.0)))
    shaky = Drive(replace(SETTINGS, conditions=Conditions(jitter=0.1)))
    moved = [
        (shaky.frame(step, 0).boxes - still.frame(step, 0).boxes)
        / still.frame(step, 0).boxes[:, [2, 3, 2, 3]]
        for step in range(8)
    ]
    assert 0.05 < np.concatenate(moved).std() < 0.2


def test_things_before_a_sign_hide_it():
    seen = Drive(replace(SETTINGS, occluded=()))
    hidden = Drive(replace(SETTINGS, occluded=("a", "b", "c")))
    assert max(seen.frame(5, 0).hidden) < 0.35
    shares = [share for step in range(10) for camera in (0, 1) for share in hidden.frame(step, camera).hidden]
    assert 0.1 < max(shares) < 0.6


def test_random_placement_uses_many_classes_and_some_outsiders():
    drive = Drive(DriveSettings(seed=1, duration=40.0, outside_share=0.25))
    names = [thing.name for thing in drive.objects]
    assert set(names) & set(OUTSIDE_KINDS)
    assert len(set(names) & set(CLASS_NAMES)) >= 12
    assert len({thing.id for thing in drive.objects}) == len(names)


def test_small_and_surplus_boxes_are_left_out():
    few = Drive(replace(SETTINGS, max_boxes=1)).frame(0, 0)
    assert len(few.ids) == 1
    large = Drive(replace(SETTINGS, min_box=10.0)).frame(0, 0)
    assert "c" not in large.ids
    assert (large.boxes[:, 2:].max(axis=1) > 9).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cameras": ()}, "cameras with names"),
        ({"duration": 0.0}, "must be > 0"),
        ({"blackouts": (Blackout("rear", 0, 1),)}, "blackout of camera 'rear'"),
        ({"switches": (IdentitySwitch(1.0, "a", "z"),)}, "'z' is to be switched"),
        ({"occluded": ("q",)}, "'q' is to be switched or occluded"),
        ({"objects": (replace(SIGNS[0], name="unicorn"),)}, "is a 'unicorn'"),
        ({"objects": (SIGNS[0], SIGNS[0])}, "ids of their own"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Drive(replace(SETTINGS, **wrong))


def test_the_demo_shows_everything_the_package_is_for():
    drive = demo_drive()
    settings = drive.settings
    assert drive.camera_names == ("left", "right")
    assert 25 <= settings.duration <= 30
    assert settings.rate == 10
    assert len({thing.label for thing in drive.objects} - {-1}) >= 12
    # The unknown object, the switched pair, dusk and the silent camera all meet boxes.
    (switch,) = settings.switches
    (blackout,) = settings.blackouts
    after = drive.frame(int(switch.time * 10) + 2, 0)
    assert after.switched.sum() == 2
    assert any("star board" in drive.frame(step, 0).names for step in (50, 60, 70))
    during = drive.frame(int((blackout.start + blackout.stop) * 5), 0)
    assert len(during.ids) > 0
    assert min(drive.conditions(step / 10).light for step in range(280)) < 0.4
    assert 2 * drive.steps - len(drive) == 30
    # One light turns from red to green under one id; a box holds nothing but scenery.
    shown = [_light_of(drive.frame(step, 0)) for step in range(55, 85, 5)]
    assert [name for name, _ in shown] == ["red light"] * 2 + ["yellow light"] * 2 + ["green light"] * 2
    assert len({track for _, track in shown}) == 1
    assert FALSE_DETECTION in drive.frame(20, 0).names
    # Two signs come into sight only where it is too dark to tell.
    new = {name for step in range(255, 280) for name in drive.frame(step, 0).ids} - set(
        drive.frame(250, 0).ids
    )
    assert len(new) == 2


def _light_of(frame):
    return next(
        (name, track) for name, track in zip(frame.names, frame.ids, strict=True) if name.endswith("light")
    )


def test_an_object_of_phases_is_each_in_turn_again_and_again():
    light = RoadsideObject(
        "l", "red light", (5.0, 2.3, 25.0), phases=((2.0, "red light"), (1.0, "green light"))
    )
    assert [light.at(t).name for t in (0.0, 1.9, 2.0, 2.9, 3.0, 5.5)] == [
        *("red light", "red light", "green light", "green light", "red light", "green light")
    ]
    assert light.at(2.5).label == CLASS_NAMES.index("green light")
    with pytest.raises(InputError, match="is a 'blue light'"):
        Drive(replace(SETTINGS, objects=(replace(light, phases=((1.0, "blue light"),)),)))


def test_a_false_detection_is_a_box_around_what_would_be_seen_without_it():
    nothing = RoadsideObject("f", FALSE_DETECTION, (5.0, 2.3, 25.0), side=1.5)
    with_it, without = (Drive(replace(SETTINGS, objects=each)).frame(0, 0) for each in ((nothing,), ()))
    np.testing.assert_array_equal(with_it.image, without.image)
    assert with_it.ids == ("f",) and with_it.labels.tolist() == [-1]
    width, height = with_it.boxes[0, 2:]
    assert width > 10 and 0.7 < width / height < 1.4


def test_lights_of_a_random_drive_change():
    lights = [thing for thing in Drive(DriveSettings(seed=1, duration=90.0)).objects if thing.phases]
    assert len(lights) >= 3
    for light in lights:
        assert {light.at(t).name for t in range(12)} == set(CLASS_NAMES[17:])
        assert light.at(0.0).name == light.name


def test_a_stretch_of_the_road_may_have_a_row_of_equal_signs():
    plain = Drive(DriveSettings(seed=5, duration=10.0))
    with_row = Drive(DriveSettings(seed=5, duration=10.0, row=(4.0, 8.0)))
    row = [thing for thing in with_row.objects if 36 <= thing.position[2] < 72]
    assert len(row) >= 4 and len({(thing.name, thing.position[:2], thing.side) for thing in row}) == 1
    outside = [thing for thing in plain.objects if not 36 <= thing.position[2] < 72]
    assert [thing for thing in with_row.objects if thing not in row] == outside
    with pytest.raises(InputError, match="row"):
        Drive(DriveSettings(row=(8.0, 4.0)))
