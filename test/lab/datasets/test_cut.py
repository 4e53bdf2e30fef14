"""From tracks to crops."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.lab.datasets import cut
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet
from support.tiny_datasets import make_trackset


def test_a_crop_of_a_whole_image_at_its_own_size_is_that_image():
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    track = Track("a", 0, (Frame(image, (0, 0, 16, 16)),))
    crops = cut(TrackSet("one", ("a",), (track,), ""), size=16, margin=0.0)
    np.testing.assert_array_equal(crops.images[0], image)


def test_crops_say_where_they_come_from():
    trackset = make_trackset(classes=2, tracks=2, frames=3)
    crops = cut(trackset, size=8, margin=0.1)
    assert crops.images.shape == (12, 8, 8, 3)
    assert crops.track.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert crops.frame.tolist() == [0, 1, 2] * 4
    assert crops.camera.tolist() == [0, 1, 0] * 4
    assert crops.label.tolist() == [0] * 6 + [1] * 6


def test_the_border_adds_surroundings_and_leaves_the_crop_as_it_was():
    trackset = make_trackset()
    plain = cut(trackset, size=20, margin=0.1)
    bordered = cut(trackset, size=20, margin=0.1, border=5)
    assert bordered.images.shape[1] == 30
    assert bordered.size == 20
    inner = bordered.without_border()
    assert inner.border == 0
    # Sampling is exact to 1/32 pixel, and edges of the test image jump by up to 196.
    assert np.abs(inner.images.astype(int) - plain.images).max() <= 196 / 32 + 1


def test_taking_rows_keeps_everything_together():
    crops = cut(make_trackset(), size=8, margin=0.0, border=2)
    some = crops.take(crops.label == 1)
    assert set(some.label) == {1}
    assert len(some) == len(some.track) == (crops.label == 1).sum()
    assert some.border == 2


@pytest.mark.parametrize("wrong", [{"size": 0}, {"border": -1}, {"margin": -0.5}, {"margin": float("nan")}])
def test_impossible_crops_are_refused(wrong):
    with pytest.raises(InputError, match="expected size"):
        cut(make_trackset(frames=1), **{"size": 8, "margin": 0.1, "border": 0, **wrong})
