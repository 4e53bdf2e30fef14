"""Views are checked before anything is computed from them."""

import numpy as np
import pytest

from lla_fusion_ros.types.errors import InputError
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


@pytest.mark.parametrize(
    ("networks", "classes", "features", "message"),
    [
        (3, 3, 5, r"logits has shape \(4, 2, 3\), expected \[tracks, 3, 3\]"),
        (2, 4, 5, r"expected \[tracks, 2, 4\]"),
        (2, 3, 6, r"features has shape \(4, 2, 5\)"),
    ],
)
def test_views_that_do_not_fit_the_ensemble_are_refused(networks, classes, features, message):
    with pytest.raises(InputError, match=message):
        views().check(networks, classes, features)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_views_that_are_not_finite_are_refused(bad):
    some = views()
    some.features[1, 0, 2] = bad
    with pytest.raises(InputError, match="features contains NaN or infinity"):
        some.check(2, 3, 5)


def test_rows_of_logits_without_features_are_refused():
    some = views()
    with pytest.raises(InputError, match="4 rows of logits but 3 of features"):
        Views(some.logits, some.features[:3]).check(2, 3, 5)
