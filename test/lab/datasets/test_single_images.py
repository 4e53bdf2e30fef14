"""MNIST, Fashion-MNIST, CIFAR-10 and one's own folders."""

from __future__ import annotations

import gzip
import json

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lla_fusion_ros.lab.datasets import cut, dataset_names, load_dataset
from lla_fusion_ros.lab.datasets.single_images import read_idx
from lla_fusion_ros.types.errors import DatasetError, InputError
from support.tiny_datasets import idx_bytes, write_mnist, write_ppm


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx_files_load_gzipped_or_not(tmp_path, name, zipped):
    images, labels = write_mnist(tmp_path, zipped=zipped)
    trackset = load_dataset(name, tmp_path, part="train")
    assert len(trackset.class_names) == 10
    assert [track.label for track in trackset.tracks] == labels.tolist()
    shown = np.stack([track.frames[0].image for track in trackset.tracks])
    np.testing.assert_array_equal(shown, np.repeat(images[..., None], 3, axis=-1))
    assert trackset.tracks[0].frames[0].box == (0, 0, 28, 28)
    assert len(load_dataset(name, tmp_path).tracks) == 12


def test_missing_idx_files_are_named(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    assert len(load_dataset("mnist", tmp_path, part="train").tracks) == 6
    with pytest.raises(DatasetError, match=r"expected the file t10k-labels-idx1-ubyte or .*\.gz"):
        load_dataset("mnist", tmp_path)


def test_images_and_labels_must_agree(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(5)))
    with pytest.raises(DatasetError, match="6 train images but 5 labels"):
        load_dataset("mnist", tmp_path, part="train")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(6) + 7))
    with pytest.raises(DatasetError, match="label 12, expected 0 to 9"):
        load_dataset("mnist", tmp_path, part="train")


@pytest.mark.parametrize("keep", [0, 3, 15, 16, 200])
def test_a_cut_idx_file_is_refused(tmp_path, keep):
    data = idx_bytes(np.random.default_rng(0).integers(0, 256, (2, 28, 28)))
    for name, content in (("cut", data[:keep]), ("cut.gz", gzip.compress(data)[:keep])):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DatasetError, match="cut"):
            read_idx(path, 3)


def test_a_bit_flip_in_a_gzipped_idx_file_is_found(tmp_path):
    data = bytearray(gzip.compress(idx_bytes(np.random.default_rng(0).integers(0, 256, (2, 28, 28)))))
    data[-6] ^= 4  # in the checksum
    path = tmp_path / "flipped.gz"
    path.write_bytes(bytes(data))
    with pytest.raises(DatasetError, match="flipped.gz' cannot be read"):
        read_idx(path, 3)


def test_an_idx_file_with_more_than_it_claims_is_refused(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(idx_bytes(np.arange(4)) + b"x")
    with pytest.raises(DatasetError, match="longer than the 4 bytes"):
        read_idx(path, 1)


def test_an_idx_header_that_claims_too_much_is_refused_before_anything_is_allocated(tmp_path):
    path = tmp_path / "huge"
    path.write_bytes(bytes((0, 0, 8, 3)) + b"\xff" * 12 + b"abc")
    with pytest.raises(DatasetError, match="header is damaged"):
        read_idx(path, 3)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60), suffix=st.sampled_from(["", ".gz", ".png", ".ppm"]))
def test_random_bytes_never_crash_a_parser(tmp_path, data, suffix):
    from lla_fusion_ros.lab.datasets.images import read_image

    path = tmp_path / f"noise{suffix}"
    path.write_bytes((b"P6 3 3 255\n" if suffix == ".ppm" else b"") + data)
    for read in (lambda: read_idx(path, 1), lambda: read_image(path)):
        try:
            read()
        except DatasetError as error:
            assert str(path) in str(error)


def cifar_rows(count, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, count)


def write_cifar(root, kind):
    batches = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    made = [cifar_rows(3, seed) for seed in range(6)]
    for name, (images, labels) in zip(batches, made, strict=True):
        if kind == "bin":
            rows = np.concatenate(
                [labels[:, None].astype(np.uint8), images.transpose(0, 3, 1, 2).reshape(3, -1)], 1
            )
            (root / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            cv2.imwrite(str(root / f"{name}.png"), images.reshape(3, 1024, 3)[..., ::-1])
    if kind == "png":
        train = np.concatenate([labels for _, labels in made[:5]]).tolist()
        (root / "train_lables.json").write_text(json.dumps(train))
        (root / "test_lables.json").write_text(json.dumps(made[5][1].tolist()))
    return made


@pytest.mark.parametrize("kind", ["bin", "png"])
def test_cifar_loads_from_both_kinds_of_batches(tmp_path, kind):
    made = write_cifar(tmp_path, kind)
    trackset = load_dataset("cifar10", tmp_path)
    assert trackset.class_names[3] == "cat"
    shown = np.stack([track.frames[0].image for track in trackset.tracks])
    np.testing.assert_array_equal(shown, np.concatenate([images for images, _ in made]))
    labels = [track.label for track in trackset.tracks]
    assert labels == np.concatenate([labels for _, labels in made]).tolist()
    assert len(load_dataset("cifar10", tmp_path, part="test").tracks) == 3


def test_damaged_cifar_batches_are_named(tmp_path):
    write_cifar(tmp_path, "bin")
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DatasetError, match=r"data_batch_2.bin' has 9212 bytes"):
        load_dataset("cifar10", tmp_path)
    path.unlink()
    with pytest.raises(DatasetError, match=r"batch expected in .*data_batch_2.bin"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize("labels", ["[1, 2]", "{}", "[0.5, 1, 2]", "[1, 2, 11]", "[1, 2", '["a", "b", "c"]'])
def test_damaged_cifar_labels_are_refused(tmp_path, labels):
    write_cifar(tmp_path, "png")
    (tmp_path / "test_lables.json").write_text(labels)
    with pytest.raises(DatasetError, match="test_lables.json"):
        load_dataset("cifar10", tmp_path, part="test")


def test_the_python_version_of_cifar_is_not_unpickled(tmp_path):
    (tmp_path / "test_batch").write_bytes(b"\x80\x02}q\x01.")
    with pytest.raises(DatasetError, match="not the Python one"):
        load_dataset("cifar10", tmp_path)


def image_of(value):
    return np.full((6, 8, 3), value, np.uint8)


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
def test_a_stray_name_is_refused_because_frames_of_one_object_would_part(tmp_path, layout):
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        for index in range(3):
            write_ppm(tmp_path / name / f"run_{index}.ppm", image_of(index))
    write_ppm(tmp_path / "cat" / "copy of run.ppm", image_of(9))
    with pytest.raises(DatasetError, match=r"1 of 7 .*'cat/copy of run.ppm'.*--layout images"):
        load_dataset("folders", tmp_path, layout=layout)
    assert len(load_dataset("folders", tmp_path, layout="images").tracks) == 7
    (tmp_path / "cat" / "copy of run.ppm").unlink()
    assert [len(track.frames) for track in load_dataset("folders", tmp_path, layout=layout).tracks] == [3, 3]


def test_all_images_that_cannot_be_read_are_named_at_once_or_left_out_and_counted(tmp_path):
    for name in ("cat", "apple"):
        (tmp_path / name).mkdir()
        for index in range(3):
            write_ppm(tmp_path / name / f"run_{index}.ppm", image_of(index))
    (tmp_path / "cat" / "run_1.ppm").write_bytes(b"P6\n8 6\n255\nshort")
    (tmp_path / "cat" / "lost_0.png").write_bytes(b"\x89PNG broken")
    (tmp_path / "apple" / "run_2.ppm").write_bytes(b"")
    with pytest.raises(DatasetError, match="3 of 7 images") as refused:
        load_dataset("folders", tmp_path)
    assert all(name in str(refused.value) for name in ("cat/run_1.ppm", "cat/lost_0.png", "apple/run_2.ppm"))
    trackset = load_dataset("folders", tmp_path, skip_bad=True)
    assert [len(track.frames) for track in trackset.tracks] == [2, 2]  # and no track without frames
    assert len(trackset.skipped) == 3
    for path in (tmp_path / "apple").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DatasetError, match="no image of class 'apple'"):
        load_dataset("folders", tmp_path, skip_bad=True)


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


def test_unknown_sets_options_and_folders_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="no data set 'imagenet'; choose one of gtsrb"):
        load_dataset("imagenet", tmp_path)
    with pytest.raises(DatasetError, match="no data set 'GTSBR'; did you mean 'gtsrb'?"):
        load_dataset("GTSBR", tmp_path)
    with pytest.raises(DatasetError, match="needs its folder"):
        load_dataset("mnist")
    with pytest.raises(DatasetError, match=r"nowhere' of data set 'mnist' does not exist"):
        load_dataset("mnist", tmp_path / "nowhere")
    with pytest.raises(InputError, match="'mnist': there is no option 'parts'; did you mean 'part'?"):
        load_dataset("mnist", tmp_path, parts="train")
    assert "signworld" in dataset_names()
