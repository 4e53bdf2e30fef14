"""One's own folders of images."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import cut, load_dataset
from lla_fusion_ros.types.errors import DatasetError
from support.tiny_datasets import write_ppm


def image_of(value):
    return np.full((6, 8, 3), value, np.uint8)


@pytest.fixture
def runs(tmp_path):
    """Two classes with a track of three images each."""
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        for index in range(3):
            write_ppm(tmp_path / name / f"run_{index}.ppm", image_of(index))
    return tmp_path


def test_own_folders_group_images_to_tracks(tmp_path):
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        for index in (10, 2, 1):
            write_ppm(tmp_path / name / f"run_a_{index}.ppm", image_of(index))
        write_ppm(tmp_path / name / "other_0.ppm", image_of(99))
    trackset = load_dataset("folders", tmp_path)
    assert trackset.class_names == ("apple", "cat")
    assert [track.id for track in trackset.tracks if track.label == 1] == ["cat/other", "cat/run_a"]
    assert [int(frame.image[0, 0, 0]) for frame in trackset.tracks[-1].frames] == [1, 2, 10]


def test_own_folders_of_single_images(tmp_path):
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        cv2.imwrite(str(tmp_path / name / "holiday.png"), image_of(5))
        cv2.imwrite(str(tmp_path / name / "beach.png"), image_of(6))
    trackset = load_dataset("folders", tmp_path)
    assert [len(track.frames) for track in trackset.tracks] == [1] * 4
    with pytest.raises(DatasetError, match=r"4 of 4 .* not named <track>_<frame>: 'apple/beach.png'"):
        load_dataset("folders", tmp_path, layout="tracks")


@pytest.mark.parametrize("layout", ["auto", "tracks"])
def test_a_stray_name_is_refused_because_frames_of_one_object_would_part(runs, layout):
    write_ppm(runs / "cat" / "copy of run.ppm", image_of(9))
    with pytest.raises(DatasetError, match=r"1 of 7 .*'cat/copy of run.ppm'.*--layout images"):
        load_dataset("folders", runs, layout=layout)
    assert len(load_dataset("folders", runs, layout="images").tracks) == 7
    (runs / "cat" / "copy of run.ppm").unlink()
    assert [len(track.frames) for track in load_dataset("folders", runs, layout=layout).tracks] == [3, 3]


def test_all_images_that_cannot_be_read_are_named_at_once_or_left_out_and_counted(runs):
    (runs / "cat" / "run_1.ppm").write_bytes(b"P6\n8 6\n255\nshort")
    (runs / "cat" / "lost_0.png").write_bytes(b"\x89PNG broken")
    (runs / "apple" / "run_2.ppm").write_bytes(b"")
    with pytest.raises(DatasetError, match="3 of 7 images") as refused:
        load_dataset("folders", runs)
    assert all(name in str(refused.value) for name in ("cat/run_1.ppm", "cat/lost_0.png", "apple/run_2.ppm"))
    trackset = load_dataset("folders", runs, skip_bad=True)
    assert [len(track.frames) for track in trackset.tracks] == [2, 2]  # and no track without frames
    assert len(trackset.skipped) == 3
    for path in (runs / "apple").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DatasetError, match="no image of class 'apple'"):
        load_dataset("folders", runs, skip_bad=True)


def test_photographs_take_no_more_memory_than_their_crops_need(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        photograph = cv2.resize(rng.integers(0, 256, (12, 9, 3), np.uint8), (600, 900))
        cv2.imwrite(str(tmp_path / name / "run_0.png"), photograph)
    trackset, sharper = (load_dataset("folders", tmp_path, crop_size=size) for size in (32, 500))
    for track, whole in zip(trackset.tracks, sharper.tracks, strict=True):
        frame = track.frames[0]
        assert frame.image.size <= 3 * (2 * 32) ** 2 and whole.frames[0].image.shape == (900, 600, 3)
        assert frame.image.base is None  # and nothing larger stays behind it
        assert frame.box == (0, 0, frame.image.shape[1], frame.image.shape[0])
    crops, exact = (cut(each, 32, 0.1).images.astype(float) for each in (trackset, sharper))
    assert np.abs(crops - exact).mean() < 3
    assert trackset.digest == sharper.digest  # the data are the same, however large the crops


def test_own_folders_without_classes_or_images_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="0 class folders"):
        load_dataset("folders", tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(DatasetError, match="a' holds no images"):
        load_dataset("folders", tmp_path)
