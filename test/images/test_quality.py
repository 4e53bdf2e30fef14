"""What is measured of a crop follows its picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.images.quality import AT_ONCE, crop_quality
from lla_fusion_ros.types.views import QUALITIES


@pytest.fixture(scope="module")
def crop() -> np.ndarray:
    crop = np.full((40, 40, 3), 90, np.uint8)
    crop[10:30, 10:30] = (200, 40, 30)
    crop[15:25:2] //= 2  # some detail
    return crop


def measured(crop: np.ndarray) -> dict[str, float]:
    return dict(zip(QUALITIES, crop_quality(crop[None])[0].tolist(), strict=True))


def test_each_quality_follows_what_spoils_a_picture(crop) -> None:
    plain = measured(crop)
    assert measured(crop // 4)["brightness"] < plain["brightness"]
    assert measured(crop // 4 + 60)["contrast"] < plain["contrast"]
    assert measured(cv2.GaussianBlur(crop, (0, 0), 4))["sharpness"] < plain["sharpness"]
    noise = np.random.default_rng(0).normal(0, 20, crop.shape)
    assert measured(np.clip(crop + noise, 0, 255).astype(np.uint8))["grain"] > plain["grain"]
    grey = np.repeat(crop.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)
    assert measured(grey)["colour"] < plain["colour"]
    assert measured(np.full_like(crop, 255))["clipped"] == measured(np.zeros_like(crop))["black"] == 1.0


def test_focus_falls_with_blur_whatever_the_contrast(crop) -> None:
    plain, blurred = measured(crop)["focus"], measured(cv2.GaussianBlur(crop, (0, 0), 3))["focus"]
    assert blurred < plain - 0.5
    assert measured(crop // 3 + 60)["focus"] == pytest.approx(plain, abs=0.1)


def test_many_crops_at_once_give_what_each_gives_alone(crop) -> None:
    many = np.stack([np.roll(crop, i, axis=1) for i in range(AT_ONCE // 40**2 + 3)])
    assert crop_quality(many)[-1].tolist() == crop_quality(many[-1:])[0].tolist()
    assert crop_quality(many[:0]).shape == (0, len(QUALITIES))
    for side in (4, 5, 8):
        assert np.isfinite(crop_quality(np.zeros((1, side, side, 3), np.uint8))).all()
