"""GTSRB and BelgiumTSC: their layout, and what happens to damaged copies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.datasets.sign_sets import GTSRB_NAMES
from lla_fusion_ros.types.errors import DatasetError, InputError
from support.tiny_datasets import write_gtsrb, write_sign_class


@pytest.fixture
def gtsrb(tmp_path):
    return write_gtsrb(tmp_path / "GTSRB", tracks=2, frames=3)


def test_a_track_is_one_sign_with_its_frames_in_order(gtsrb):
    for root in (gtsrb, gtsrb.parents[0], gtsrb.parents[1]):  # any folder down to the class folders
        trackset = load_dataset("gtsrb", root)
    assert trackset.class_names == GTSRB_NAMES
    assert len(trackset.tracks) == 43 * 2
    track = trackset.tracks[5]
    assert (track.id, track.label) == ("00002/00001", 2)
    assert [frame.time for frame in track.frames] == pytest.approx([0, 1 / 30, 2 / 30])
    assert track.frames[0].box == (2, 1, 10, 9)
    assert track.frames[0].image.shape == (10, 12, 3)


def test_the_digest_names_the_content(gtsrb):
    before = load_dataset("gtsrb", gtsrb).digest
    assert load_dataset("gtsrb", gtsrb).digest == before
    image = gtsrb / "00007" / "00000_00001.ppm"
    data = bytearray(image.read_bytes())
    data[-1] ^= 1
    image.write_bytes(bytes(data))
    assert load_dataset("gtsrb", gtsrb).digest != before


def test_a_folder_that_lacks_classes_says_what_was_expected_and_may_be_asked_for_as_a_part(tmp_path, gtsrb):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="expected Final_Training/Images/00000 to 00042"):
        load_dataset("gtsrb", tmp_path / "empty")
    shutil.rmtree(gtsrb / "00000")
    with pytest.raises(DatasetError, match=r"incomplete: expected 43 .* missing 1 \(00000\)"):
        load_dataset("gtsrb", gtsrb)
    for part in (load_dataset("gtsrb", gtsrb, partial=True), load_dataset("gtsrb", gtsrb, to_score=True)):
        assert part.class_names == GTSRB_NAMES
        assert {track.label for track in part.tracks} == set(range(1, 43))


HEADER = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (HEADER + "00000_00000.ppm;12;10;2;1;40;9;3", "does not lie in 12x10"),
        (HEADER + "00000_00000.ppm;12;10;2;1;10;9;4", "ClassId 4, expected 3"),
        (HEADER + "../00004/00000_00000.ppm;12;10;2;1;10;9;3", "leaves the folder"),
        (HEADER + "00000_00000.ppm;12;ten;2;1;10;9;3", "line 2 is damaged"),
        (HEADER + "00000_00000.ppm;12", "line 2 is damaged"),
        (HEADER + "00000_00000.ppm;9;10;2;1;9;9;3", "is 12x10, annotated as 9x10"),
        (HEADER + "00000_00009.ppm;12;10;2;1;10;9;3", "is listed in the annotations but missing"),
        ("name,label\na.ppm,3\n", "must begin with the columns Filename;Width"),
        (b"\xff\xfe\x00\x80" * 20, "GT-00003.csv"),
        (None, "annotations expected in .*GT-00003.csv"),
    ],
)
def test_damaged_annotations_are_named_with_their_line(gtsrb, annotations, message):
    path = gtsrb / "00003" / "GT-00003.csv"
    path.unlink()
    if annotations is not None:
        path.write_bytes(annotations if isinstance(annotations, bytes) else annotations.encode())
    with pytest.raises(DatasetError, match=message):
        load_dataset("gtsrb", gtsrb)


@pytest.fixture
def belgium(tmp_path):
    root = tmp_path / "BelgiumTSC"
    for class_id in range(62):
        write_sign_class(root / "Training" / f"{class_id:05d}", class_id, groups=1, images=3)
    for class_id in (0, 4):  # the official Testing lacks classes too
        write_sign_class(root / "Testing" / f"{class_id:05d}", class_id, groups=2, images=2, seed=1)
    return root


def test_a_belgian_sign_is_a_track_whose_frames_are_cameras(belgium):
    path = belgium / "Training" / "00009" / "GT-00009.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")  # an image listed twice
    trackset = load_dataset("belgiumtsc", belgium)
    assert len(trackset.class_names) == 62
    assert len({track.id for track in trackset.tracks}) == len(trackset.tracks) == 62 + 4
    for label in (0, 9):
        assert [frame.camera for frame in trackset.tracks[label].frames] == [0, 1, 2]
    assert {frame.time for frame in trackset.tracks[0].frames} == {0.0}


def test_the_parts_of_belgiumtsc_can_be_had_apart_and_one_will_do_for_scoring(belgium):
    assert len(load_dataset("belgiumtsc", belgium, part="train").tracks) == 62
    assert [track.part for track in load_dataset("belgiumtsc", belgium).tracks].count("test") == 4
    with pytest.raises(InputError, match="part 'dev' is unknown, expected one of train, test, all"):
        load_dataset("belgiumtsc", belgium, part="dev")
    shutil.rmtree(belgium / "Training")
    assert len(load_dataset("belgiumtsc", belgium, to_score=True).tracks) == 4
    with pytest.raises(DatasetError, match="expected Training/00000"):
        load_dataset("belgiumtsc", belgium)
    shutil.rmtree(belgium / "Testing")
    with pytest.raises(DatasetError, match="no BelgiumTSC"):
        load_dataset("belgiumtsc", belgium, to_score=True)


def test_mirror_images_come_in_pairs(gtsrb, belgium):
    shown = {}
    for trackset in (load_dataset("gtsrb", gtsrb), load_dataset("belgiumtsc", belgium)):
        names, mirrored = trackset.class_names, trackset.mirrored
        assert all(other is None or mirrored[other] == label for label, other in enumerate(mirrored))
        shown |= {
            names[label]: None if other is None else names[other] for label, other in enumerate(mirrored)
        }
    assert shown["turn right ahead"] == "turn left ahead"
    assert shown["bend to the left"] == "bend to the right"
    assert shown["priority road"] == "priority road"
    assert shown["stop"] is shown["no left turn"] is shown["roundabout"] is None


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
