"""Views are checked before anything is computed from them."""

import numpy as np
import pytest

from lla_fusion_ros.types.views import Views


def views(tracks=4, networks=2, classes=3, features=5):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(tracks, networks, classes))
    return Views(logits, rng.normal(size=(tracks, networks, features)))


def test_taking_rows_takes_them_everywhere():
    some = views()
    part = some.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.logits, some.logits[[2, 0]])
    np.testing.assert_array_equal(part.features, some.features[[2, 0]])


@pytest.mark.parametrize("tracks", [0, 4])
def test_views_know_their_axes_also_of_no_tracks(tracks):
    some = views(tracks)
    assert (len(some), some.networks, some.classes) == (tracks, 2, 3)
    some.check(2, 3, 5)
