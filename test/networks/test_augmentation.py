"""Test-time augmentation as views."""

import numpy as np
import pytest

from lla_fusion_ros.fusion.mean_pmf import MeanPmf
from lla_fusion_ros.networks.augmentation import DEFAULT, Augmentation, augmented_views, fuse_augmented
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.views import Views

CROPS = np.random.default_rng(0).integers(0, 256, size=(3, 16, 16, 3)).astype(np.uint8)


def linear_classifier(crops):
    """A real, if simple, classifier of two networks: linear in block means of the crop."""
    phi = crops.reshape(len(crops), 4, 4, 4, 4, 3).mean(axis=(2, 4)).reshape(len(crops), -1) / 255
    phi = np.c_[phi, np.ones(len(crops))]
    weights = np.random.default_rng(1).normal(size=(2, phi.shape[1], 5))
    return Views(np.einsum("nd,cdm->ncm", phi, weights), np.repeat(phi[:, None], 2, axis=1))


def test_the_first_default_changes_nothing():
    np.testing.assert_array_equal(DEFAULT[0](CROPS), CROPS)
    for other in DEFAULT[1:]:
        changed = other(CROPS)
        assert changed.shape == CROPS.shape and changed.dtype == np.uint8
        assert (changed != CROPS).any()


def test_a_shift_moves_pixels_and_repeats_the_edge():
    moved = Augmentation(right=1 / 16)(CROPS)
    np.testing.assert_array_equal(moved[:, :, 1:], CROPS[:, :, :-1])
    np.testing.assert_array_equal(moved[:, :, 0], CROPS[:, :, 0])


def test_a_quarter_turn_equals_rot90():
    np.testing.assert_array_equal(Augmentation(turn=90)(CROPS), np.rot90(CROPS, axes=(1, 2)))


def test_mirror_and_gain():
    np.testing.assert_array_equal(Augmentation(mirror=True)(CROPS), CROPS[:, :, ::-1])
    assert Augmentation(gain=10.0)(CROPS).max() == 255
    assert not any(augmentation.mirror for augmentation in DEFAULT)


def test_every_augmentation_is_one_more_view_of_every_crop():
    views = augmented_views(linear_classifier, CROPS)
    assert len(views) == len(DEFAULT) and all(len(v) == 3 for v in views)
    np.testing.assert_allclose(views[0].logits, linear_classifier(CROPS).logits)
    np.testing.assert_allclose(views[7].logits, linear_classifier(DEFAULT[7](CROPS)).logits)


def test_the_mean_over_augmentations_is_a_fuser_over_views():
    views = augmented_views(linear_classifier, CROPS)
    posterior = EnsemblePosterior(np.tile(np.eye(49), (2, 5, 1, 1)), 1.0)
    fused = fuse_augmented(MeanPmf(posterior), views)
    expected = softmax(np.stack([v.logits for v in views])).mean(axis=(0, 2))
    np.testing.assert_allclose(fused, expected, rtol=1e-9)


def test_no_crops_and_bad_requests():
    assert all(len(augment(CROPS[:0])) == 0 for augment in DEFAULT)
    with pytest.raises(InputError, match="at least one augmentation"):
        augmented_views(linear_classifier, CROPS, ())
    with pytest.raises(InputError, match="must be positive"):
        Augmentation(zoom=0.0)
