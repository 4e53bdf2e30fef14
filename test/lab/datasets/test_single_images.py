"""MNIST, Fashion-MNIST and CIFAR-10, and the door to all data sets."""

from __future__ import annotations

import gzip
import json

import cv2
import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import dataset_names, load_dataset
from lla_fusion_ros.lab.datasets.single_images import read_idx
from lla_fusion_ros.types.errors import DatasetError, InputError
from support.tiny_datasets import idx_bytes, write_mnist


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


def test_idx_files_that_are_missing_or_disagree_are_named(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DatasetError, match=r"expected the file t10k-labels-idx1-ubyte or .*\.gz"):
        load_dataset("mnist", tmp_path)
    for labels, message in (
        (np.arange(5), "6 train images but 5"),
        (np.arange(6) + 7, "label 12, expected 0"),
    ):
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
        with pytest.raises(DatasetError, match=message):
            load_dataset("mnist", tmp_path, part="train")


IDX = idx_bytes(np.random.default_rng(0).integers(0, 256, (2, 28, 28)))
GZIPPED = gzip.compress(IDX, mtime=0)  # names of tests are made from it: the same in every process


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(
            (name, data[:keep], name)
            for name, data in (("cut", IDX), ("cut.gz", GZIPPED))
            for keep in (0, 15, 200)
        ),
        ("flipped.gz", GZIPPED[:-6] + bytes([GZIPPED[-6] ^ 4]) + GZIPPED[-5:], "flipped.gz' cannot be read"),
        ("long", IDX + b"x", "longer than the 1568 bytes"),
        ("huge", bytes((0, 0, 8, 3)) + b"\xff" * 12 + b"abc", "header is damaged"),  # before it allocates
    ],
)
def test_a_damaged_idx_file_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_idx(tmp_path / name, 3)


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
    (tmp_path / "test_batch").write_bytes(b"\x80\x02}q\x01.")  # the Python version is not unpickled
    with pytest.raises(DatasetError, match="not the Python one"):
        load_dataset("cifar10", tmp_path)
    write_cifar(tmp_path, "bin")
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DatasetError, match=r"data_batch_2.bin' has 9212 bytes"):
        load_dataset("cifar10", tmp_path)
    path.unlink()
    with pytest.raises(DatasetError, match=r"batch expected in .*data_batch_2.bin"):
        load_dataset("cifar10", tmp_path)


def test_damaged_cifar_labels_are_refused(tmp_path):
    write_cifar(tmp_path, "png")
    for labels in ("[1, 2]", "{}", "[0.5, 1, 2]", "[1, 2, 11]", "[1, 2", '["a", "b", "c"]'):
        (tmp_path / "test_lables.json").write_text(labels)
        with pytest.raises(DatasetError, match="test_lables.json"):
            load_dataset("cifar10", tmp_path, part="test")


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
