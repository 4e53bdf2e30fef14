"""GTSRB and BelgiumTSC: their layout, and what happens to damaged copies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import load_dataset, load_part_of_dataset
from lla_fusion_ros.lab.datasets.sign_sets import GTSRB_NAMES
from lla_fusion_ros.types.errors import DatasetError, InputError
from support.tiny_datasets import write_gtsrb, write_sign_class


@pytest.fixture
def gtsrb(tmp_path):
    return write_gtsrb(tmp_path / "GTSRB", tracks=2, frames=3)


def test_a_track_is_one_sign_with_its_frames_in_order(gtsrb):
    trackset = load_dataset("gtsrb", gtsrb.parents[1])
    assert trackset.class_names == GTSRB_NAMES
    assert len(trackset.tracks) == 43 * 2
    track = trackset.tracks[5]
    assert (track.id, track.label) == ("00002/00001", 2)
    assert [frame.time for frame in track.frames] == pytest.approx([0, 1 / 30, 2 / 30])
    assert track.frames[0].box == (2, 1, 10, 9)
    assert track.frames[0].image.shape == (10, 12, 3)


@pytest.mark.parametrize("up", [0, 1, 2])
def test_the_root_may_be_any_folder_down_to_the_class_folders(gtsrb, up):
    root = [gtsrb, *gtsrb.parents][up]
    assert len(load_dataset("gtsrb", root).tracks) == 86


def test_the_digest_names_the_content(gtsrb):
    before = load_dataset("gtsrb", gtsrb).digest
    assert load_dataset("gtsrb", gtsrb).digest == before
    image = gtsrb / "00007" / "00000_00001.ppm"
    data = bytearray(image.read_bytes())
    data[-1] ^= 1
    image.write_bytes(bytes(data))
    assert load_dataset("gtsrb", gtsrb).digest != before


def test_an_empty_folder_says_what_was_expected(tmp_path):
    with pytest.raises(DatasetError, match="expected Final_Training/Images/00000 to 00042"):
        load_dataset("gtsrb", tmp_path)


def test_a_missing_class_folder_is_named(gtsrb):
    shutil.rmtree(gtsrb / "00041")
    with pytest.raises(DatasetError, match=r"incomplete: expected 43 .* missing 1 \(00041\)"):
        load_dataset("gtsrb", gtsrb)


def test_a_missing_image_is_named(gtsrb):
    (gtsrb / "00003" / "00001_00002.ppm").unlink()
    with pytest.raises(DatasetError, match=r"00001_00002.ppm' is listed in the annotations but missing"):
        load_dataset("gtsrb", gtsrb)


def test_missing_annotations_are_named(gtsrb):
    (gtsrb / "00003" / "GT-00003.csv").unlink()
    with pytest.raises(DatasetError, match=r"annotations expected in .*GT-00003.csv"):
        load_dataset("gtsrb", gtsrb)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("00000_00000.ppm;12;10;2;1;40;9;3", "does not lie in 12x10"),
        ("00000_00000.ppm;12;10;2;1;10;9;4", "ClassId 4, expected 3"),
        ("../00004/00000_00000.ppm;12;10;2;1;10;9;3", "leaves the folder"),
        ("00000_00000.ppm;12;ten;2;1;10;9;3", "line 2 is damaged"),
        ("00000_00000.ppm;12", "line 2 is damaged"),
        ("00000_00000.ppm;9;10;2;1;9;9;3", "is 12x10, annotated as 9x10"),
    ],
)
def test_a_damaged_annotation_names_its_line(gtsrb, line, message):
    header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
    (gtsrb / "00003" / "GT-00003.csv").write_text(f"{header}\n{line}\n")
    with pytest.raises(DatasetError, match=message):
        load_dataset("gtsrb", gtsrb)


def test_annotations_with_other_columns_are_refused(gtsrb):
    (gtsrb / "00003" / "GT-00003.csv").write_text("name,label\na.ppm,3\n")
    with pytest.raises(DatasetError, match="must begin with the columns Filename;Width"):
        load_dataset("gtsrb", gtsrb)


def test_annotations_that_are_no_text_are_refused(gtsrb):
    (gtsrb / "00003" / "GT-00003.csv").write_bytes(b"\xff\xfe\x00\x80" * 20)
    with pytest.raises(DatasetError, match=r"GT-00003.csv"):
        load_dataset("gtsrb", gtsrb)


def write_belgium(root):
    for class_id in range(62):
        write_sign_class(root / "Training" / f"{class_id:05d}", class_id, groups=1, images=3)
    for class_id in (0, 4):  # the official Testing lacks classes too
        write_sign_class(root / "Testing" / f"{class_id:05d}", class_id, groups=2, images=2, seed=1)


def test_a_belgian_sign_is_a_track_whose_frames_are_cameras(tmp_path):
    write_belgium(tmp_path)
    trackset = load_dataset("belgiumtsc", tmp_path)
    assert len(trackset.class_names) == 62
    assert len(trackset.tracks) == 62 + 4
    assert [frame.camera for frame in trackset.tracks[0].frames] == [0, 1, 2]
    assert {frame.time for frame in trackset.tracks[0].frames} == {0.0}
    assert len({track.id for track in trackset.tracks}) == len(trackset.tracks)


def test_the_parts_of_belgiumtsc_can_be_had_apart(tmp_path):
    write_belgium(tmp_path)
    assert len(load_dataset("belgiumtsc", tmp_path, part="train").tracks) == 62
    assert len(load_dataset("belgiumtsc", tmp_path, part="test").tracks) == 4
    assert [track.part for track in load_dataset("belgiumtsc", tmp_path).tracks].count("test") == 4
    with pytest.raises(InputError, match="part 'dev' is unknown"):
        load_dataset("belgiumtsc", tmp_path, part="dev")


def test_an_image_listed_twice_is_loaded_once(tmp_path):
    write_belgium(tmp_path)
    path = tmp_path / "Training" / "00009" / "GT-00009.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    track = next(t for t in load_dataset("belgiumtsc", tmp_path, part="train").tracks if t.label == 9)
    assert [frame.camera for frame in track.frames] == [0, 1, 2]


def test_belgiumtsc_without_its_testing_part_is_named(tmp_path):
    write_belgium(tmp_path)
    shutil.rmtree(tmp_path / "Testing")
    with pytest.raises(DatasetError, match="expected Testing/00000"):
        load_dataset("belgiumtsc", tmp_path)


def test_a_part_of_a_set_will_do_for_scoring(tmp_path, gtsrb):
    write_belgium(tmp_path)
    shutil.rmtree(tmp_path / "Training")
    assert len(load_part_of_dataset("belgiumtsc", tmp_path).tracks) == 4
    shutil.rmtree(gtsrb / "00000")
    assert {track.label for track in load_part_of_dataset("gtsrb", gtsrb).tracks} == set(range(1, 43))
    shutil.rmtree(tmp_path / "Testing")
    with pytest.raises(DatasetError, match="no BelgiumTSC"):
        load_part_of_dataset("belgiumtsc", tmp_path)


def test_the_real_gtsrb_has_its_tracks(data_root):
    folder = data_root / "GTSRB"
    if not folder.is_dir():
        pytest.skip(f"no GTSRB in {data_root}")
    trackset = load_dataset("gtsrb", folder)
    assert {track.label for track in trackset.tracks} == set(range(43))
    lengths = [len(track.frames) for track in trackset.tracks]
    assert np.median(lengths) == 30
    first = np.mean([track.frames[0].image.shape[0] for track in trackset.tracks])
    last = np.mean([track.frames[-1].image.shape[0] for track in trackset.tracks])
    assert first < last  # far away first


def test_the_real_belgiumtsc_has_several_cameras(data_root):
    folder = data_root / "BelgiumTSC"
    if not folder.is_dir():
        pytest.skip(f"no BelgiumTSC in {data_root}")
    lengths = [len(track.frames) for track in load_dataset("belgiumtsc", folder).tracks]
    assert np.median(lengths) == 3


def test_a_part_of_gtsrb_can_be_asked_for(gtsrb):
    whole = load_dataset("gtsrb", gtsrb)
    shutil.rmtree(gtsrb / "00000")
    part = load_dataset("gtsrb", gtsrb, partial=True)
    assert part.class_names == whole.class_names
    assert {track.label for track in part.tracks} == set(range(1, 43))


def pairs_of_mirror_images(trackset):
    """By name; whatever is the mirror image of a sign has that sign as its own."""
    names, mirrored = trackset.class_names, trackset.mirrored
    assert len(mirrored) == len(names)
    assert all(other is None or mirrored[other] == label for label, other in enumerate(mirrored))
    return {names[label]: None if other is None else names[other] for label, other in enumerate(mirrored)}


def test_mirror_images_of_gtsrb_come_in_pairs(gtsrb):
    mirrored = pairs_of_mirror_images(load_dataset("gtsrb", gtsrb))
    assert mirrored["turn right ahead"] == "turn left ahead"
    assert mirrored["stop"] is None


def test_mirror_images_of_belgiumtsc_come_in_pairs(tmp_path):
    write_belgium(tmp_path)
    mirrored = pairs_of_mirror_images(load_dataset("belgiumtsc", tmp_path))
    assert mirrored["bend to the left"] == "bend to the right"
    assert mirrored["priority road"] == "priority road"
    assert mirrored["stop"] is mirrored["no left turn"] is mirrored["roundabout"] is None
