"""Synthetic outliers."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import OUTLIER_KINDS, cut, load_dataset, outlier_tracks
from lla_fusion_ros.types.errors import InputError
from support.tiny_datasets import make_trackset


@pytest.fixture(scope="module")
def crops():
    return cut(load_dataset("signworld", tracks=5, frames=12), size=32, margin=0.1, border=8)


def test_there_are_tracks_as_asked_for_with_label_minus_one(crops):
    outliers = outlier_tracks(crops, count=25, seed=0)
    assert np.unique(outliers.track).tolist() == list(range(25))
    assert set(outliers.label) == {-1}
    assert outliers.border == crops.border
    assert outliers.images.shape == (300, 48, 48, 3)
    assert outliers.images.dtype == np.uint8


@pytest.mark.parametrize("kind", OUTLIER_KINDS)
def test_every_kind_changes_the_sign_and_not_only_a_little(crops, kind):
    order = np.argsort(
        crops.images.std(axis=(1, 2, 3))
    )  # on far signs at dusk a pictogram is a few grey pixels
    rows = order[-3:]
    others = crops.images[order[~np.isin(crops.label[order], crops.label[rows])][-3:]]
    changed = OUTLIER_KINDS[kind](crops.images[rows], others, 32 / 48, np.random.default_rng(3))
    assert changed.shape == crops.images[rows].shape
    assert changed.dtype == np.uint8
    difference = np.abs(changed.astype(int) - crops.images[rows]).max(axis=-1)
    share = (difference > 25).mean(axis=(1, 2))
    assert (share > 0.01).all() and share.mean() > 0.02


def test_equal_seeds_give_equal_outliers(crops):
    first, again, other = (outlier_tracks(crops, 12, seed).images for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_more_outliers_begin_with_the_same_ones(crops):
    few, many = outlier_tracks(crops, 5, 0), outlier_tracks(crops, 9, 0)
    np.testing.assert_array_equal(few.images, many.images[: len(few)])
    assert len(outlier_tracks(crops, 0, 0)) == 0


def test_one_class_alone_cannot_be_mixed():
    with pytest.raises(InputError, match="at least two classes"):
        outlier_tracks(cut(make_trackset(classes=1), 16, 0.0), 3, 0)
