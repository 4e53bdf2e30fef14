"""Named conditions on images, and background to fit warnings against."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import cut, load_dataset
from lla_fusion_ros.lab.datasets.background import BACKGROUND_KINDS, background_tracks
from lla_fusion_ros.lab.datasets.conditions import CONDITIONS, DISTANT, UNREADABLE, under_condition
from lla_fusion_ros.types.errors import DatasetError


@pytest.fixture(scope="module")
def tracks():
    return load_dataset("signworld", None, tracks=2, frames=3, seed=3)


@pytest.mark.parametrize("name", [*CONDITIONS, *DISTANT, *UNREADABLE])
def test_a_condition_changes_the_crops_and_equal_seeds_give_equal_ones(tracks, name) -> None:
    plain = cut(tracks, 32, 0.1).images
    once, again = (cut(under_condition(tracks, name, seed=5), 32, 0.1).images for _ in range(2))
    np.testing.assert_array_equal(once, again)
    # far away the sign world's boxes are small by themselves
    assert (once == plain).all() == (name in ("as recorded", "small box"))


def test_conditions_do_what_they_are_called(tracks) -> None:
    plain = cut(tracks, 32, 0.1).images.astype(float)
    assert cut(under_condition(tracks, "dark"), 32, 0.1).images.mean() < 0.6 * plain.mean()
    assert cut(under_condition(tracks, "bright"), 32, 0.1).images.mean() > 1.1 * plain.mean()
    small = under_condition(tracks, "speck").tracks[0].frames[-1].box
    assert max(small[2] - small[0], small[3] - small[1]) <= 6.5


def test_background_needs_no_data_and_one_track_shows_one_place() -> None:
    tracks = background_tracks(2 * len(BACKGROUND_KINDS), frames=4, seed=1)
    assert {track.label for track in tracks.tracks} == {-1}
    crops = cut(tracks, 32, 0.1).images.astype(float).reshape(len(tracks.tracks), 4, -1)
    within = np.abs(crops[:, 0] - crops[:, -1]).mean()
    assert within < np.abs(crops[:, 0] - np.roll(crops[:, 0], 1, axis=0)).mean()


def test_background_comes_from_a_folder_of_images_at_any_depth(tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    cv2.imwrite(str(tmp_path / "deep" / "red.png"), np.full((50, 60, 3), (0, 0, 255), np.uint8))
    tracks = background_tracks(3, frames=2, folder=tmp_path)
    assert all((frame.image == (255, 0, 0)).all() for track in tracks.tracks for frame in track.frames)
    with pytest.raises(DatasetError, match="no images below"):
        background_tracks(1, folder=tmp_path / "nothing")


def test_far_objects_stand_behind_something(tracks) -> None:
    frames = under_condition(tracks, "far, half hidden").tracks[0].frames
    x0, y0, x1, y1 = np.round(frames[-1].box).astype(int)
    assert max(x1 - x0, y1 - y0) <= 13
    plain = cv2.resize(cut(tracks, 32, 0.1).images[len(frames) - 1], (12, 12), interpolation=cv2.INTER_AREA)
    far = cut(under_condition(tracks, "far, half hidden"), 12, 0.1).images[len(frames) - 1]
    changed = (np.abs(far.astype(int) - plain).max(axis=2) > 40).mean()
    assert 0.1 < changed < 0.8
