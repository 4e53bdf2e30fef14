"""Tracks for training, rendered without whole images."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import cut, load_dataset
from lla_fusion_ros.signworld import CLASS_NAMES, RoadsideObject
from lla_fusion_ros.signworld.camera import through_jpeg
from lla_fusion_ros.signworld.drive_settings import TWO_CAMERAS
from lla_fusion_ros.signworld.render import Renderer
from lla_fusion_ros.signworld.scene import make_look, scatter_props
from lla_fusion_ros.signworld.signs import face_of
from lla_fusion_ros.signworld.tracks import RENDERING
from lla_fusion_ros.types.errors import InputError

# Mean brightness of the last frame of each track of `trackset`, as of RENDERING 1.
BRIGHTNESS = """
94.8 65.2 120.4 86.0 49.1 142.0 40.3 128.0 115.1 75.9 92.3 40.5 114.7
121.8 69.4 80.2 74.9 66.1 49.1 29.2 68.2 89.8 144.3 63.1 120.7 121.0
"""


@pytest.fixture(scope="module")
def trackset():
    return load_dataset("signworld", tracks=20, outside=6, frames=30)


def test_every_class_has_its_tracks_and_other_objects_have_none(trackset):
    assert trackset.class_names == CLASS_NAMES
    assert [track.label for track in trackset.tracks] == [*range(20), *[-1] * 6]
    assert len({track.id for track in trackset.tracks}) == 26
    lengths = [len(track.frames) for track in trackset.tracks]  # what is mostly hidden has no box
    assert max(lengths) == np.median(lengths) == 30 and min(lengths) >= 10


def test_both_cameras_take_part_and_the_object_comes_nearer(trackset):
    for track in trackset.tracks:
        assert {frame.camera for frame in track.frames} == {0, 1}
        times = [frame.time for frame in track.frames]
        assert times == sorted(times)
        assert times[-1] > 1
        first, last = (frame.box[2] - frame.box[0] for frame in (track.frames[0], track.frames[-1]))
        assert last > 1.1 * first


def test_boxes_lie_in_their_images_with_surroundings(trackset):
    for track in trackset.tracks:
        for frame in track.frames:
            height, width = frame.image.shape[:2]
            x0, y0, x1, y1 = frame.box
            assert -0.15 * (x1 - x0) < x0 < x1 < width + 0.15 * (x1 - x0)
            assert -0.15 * (y1 - y0) < y0 < y1 < height + 0.15 * (y1 - y0)
            assert width > 1.2 * (x1 - x0)


def test_the_images_are_still_those_that_the_number_of_the_rendering_stands_for(trackset):
    """The digest names the options, not the pixels: whoever changes what they give must raise RENDERING.

    Processors differ in the last bits.
    """
    brightness = [round(float(track.frames[-1].image.mean()), 1) for track in trackset.tracks]
    assert RENDERING == 2
    np.testing.assert_allclose(brightness, [float(word) for word in BRIGHTNESS.split()], atol=0.5)


def test_a_window_shows_exactly_what_the_whole_image_shows():
    look, rng = make_look(0), np.random.default_rng(0)
    props = scatter_props(0.0, 120.0, rng)
    thing = RoadsideObject("a", "stop", (5.0, 2.3, 25.0), yaw=5.0)
    for camera in TWO_CAMERAS:
        renderer = Renderer(look, camera)
        whole, seen = renderer.render([thing], props, (1.8, 5.0))
        x0, y0, x1, y1 = (int(edge) for edge in seen[0].box)
        window = (x0 - 20, y0 - 15, x1 + 25, y1 + 40)
        part, _ = renderer.render([thing], props, (1.8, 5.0), window)
        same = (
            np.abs(whole[window[1] : window[3], window[0] : window[2]].astype(int) - part).max(axis=-1) <= 2
        )
        assert same.mean() > 0.99


def test_jpeg_keeps_fine_light_and_loses_fine_colour():
    grey, colour = np.zeros((32, 32, 3), np.uint8), np.zeros((32, 32, 3), np.uint8)
    grey[:, ::2] = 255
    colour[:, ::2], colour[:, 1::2] = (110, 0, 0), (0, 0, 255)  # about as light as each other
    kept, lost = (through_jpeg(image, 92).astype(int) for image in (grey, colour))
    assert abs(kept[:, ::2].mean() - 255) < 10 and kept[:, 1::2].mean() < 10
    assert abs(lost[:, ::2].mean(axis=(0, 1)) - lost[:, 1::2].mean(axis=(0, 1))).max() < 20


@pytest.mark.parametrize("wrong", [{"tracks": -1}, {"frames": 0}, {"occluded": 1.5}])
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(InputError, match="must be >= 0"):
        load_dataset("signworld", **wrong)


def test_fewer_tracks_are_the_same_ones_and_another_seed_gives_others(trackset):
    few = load_dataset("signworld", tracks=2, frames=30)
    assert few.digest != trackset.digest
    for one, other in zip(trackset.tracks, few.tracks, strict=False):
        for frame, again in zip(one.frames, other.frames, strict=True):
            np.testing.assert_array_equal(frame.image, again.image)
    changed = load_dataset("signworld", tracks=1, frames=2, seed=1)
    assert not np.array_equal(changed.tracks[0].frames[0].image, trackset.tracks[0].frames[0].image)


def test_crops_show_their_signs(trackset):
    crops = cut(trackset, size=24, margin=0.0)
    faces = np.stack(
        [cv2.resize(face_of(name), (24, 24), interpolation=cv2.INTER_AREA) for name in CLASS_NAMES]
    )
    faces = faces[..., :3] + (255 - faces[..., 3:].astype(float)) / 2  # on grey

    def normalised(images):
        flat = images.reshape(len(images), -1).astype(float)
        return (flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True)

    alike = normalised(crops.images) @ normalised(faces).T  # [crops, classes]
    guess = np.stack([alike[crops.track == track].sum(0).argmax() for track in range(20)])
    assert (guess == np.arange(20)).mean() > 0.6


def test_a_light_keeps_its_state_along_a_track_and_its_classes_are_said_to_change(trackset):
    assert trackset.changing == ("red light", "yellow light", "green light") == CLASS_NAMES[17:]
    faces = [face_of(name)[..., :3].astype(int) for name in trackset.changing]
    where = [np.argmax(face.max(axis=2).sum(axis=1)) for face in faces]  # the row of the lamp that is lit
    assert where == sorted(where) and len(set(where)) == 3
