"""The views of whole tracks."""

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined, stacked


def tracks(count, steps, longest=6):
    """Every number is another one, so that none can be taken for its neighbour."""
    logits = np.arange(count * longest * 2 * 3, dtype=np.float32).reshape(count, longest, 2, 3)
    return TrackViews.of_one_camera(logits, -logits[..., :2], np.array(steps), np.arange(count))


def test_joined_tracks_are_padded():
    long, short = tracks(2, [6, 5]), tracks(3, [2, 2, 1], longest=2)
    both = joined([long, short])
    assert both.logits.shape[:2] == both.camera.shape == (5, 6)
    np.testing.assert_array_equal(both.logits[2:, :2], short.logits)
    assert (both.logits[2:, 2:] == 0).all()
    with pytest.raises(InputError, match="no tracks"):
        joined([])


def test_some_tracks_some_networks_and_one_step():
    some = tracks(3, [6, 2, 4])
    np.testing.assert_array_equal(some.take(np.array([2])).logits, some.logits[2:])
    np.testing.assert_array_equal(some.reaching(4).label, [0, 2])
    np.testing.assert_array_equal(some.select([1]).features, some.features[:, :, 1:])
    np.testing.assert_array_equal(some.views_at(3).logits, some.logits[:, 3])


def test_sizes_of_boxes_go_with_their_views():
    long, short = tracks(2, [6, 5]), tracks(1, [2], longest=2)
    sizes = [np.arange(12.0).reshape(2, 6), np.array([[20.0, 21.0]])]
    both = joined([replace(part, size=size) for part, size in zip((long, short), sizes, strict=True)])
    np.testing.assert_array_equal(both.views_at(1).size, [1, 7, 21])
    np.testing.assert_array_equal(both.take(np.array([2])).size[:, :2], [[20, 21]])
    assert stacked([both, both], 2).size.shape == (6, 6)
    assert joined([long, both]).size is None and long.views_at(0).size is None


def test_flat_views_are_the_real_ones_only():
    logits, features, label = tracks(3, [1, 2, 1]).flat()
    everything = tracks(3, [1, 2, 1])
    np.testing.assert_array_equal(logits, everything.logits[[0, 1, 1, 2], [0, 0, 1, 0]])
    np.testing.assert_array_equal(features, -logits[..., :2])
    np.testing.assert_array_equal(label, [0, 1, 1, 2])


def test_an_object_under_several_regimes_counts_once():
    apart = tracks(3, [1, 1, 1])
    assert apart.objects == 3
    assert replace(apart, source=np.array([4, 4, 9])).objects == 2
