from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.stream.scores import DOUBT, ScoreReader
from lla_fusion_ros.types.errors import BundleError


def test_the_rest_of_one_score_is_spread_evenly_and_a_low_one_still_names_the_best_class():
    reader = ScoreReader(score_bundle(("car", "truck", "bus"), places=3))
    np.testing.assert_allclose(reader.pmf((("car", 0.6),), {}), [0.6, 0.2, 0.2], atol=DOUBT)
    np.testing.assert_allclose(reader.pmf((("truck", 0.1),), {}), [1 / 3, 1 / 3, 1 / 3], atol=DOUBT)
    listed = (("car", 0.2), ("bus", 0.7), ("truck", 0.1))
    np.testing.assert_allclose(reader.pmf(listed, {}), [0.2, 0.1, 0.7], atol=DOUBT)


@pytest.mark.parametrize("score", [0.0, -1.0, float("nan")])
def test_a_class_without_a_usable_score_says_nothing(score):
    reader = ScoreReader(score_bundle())
    assert reader.pmf((("car", score),), {}) is None
    assert reader.pmf((), {}) is None


def test_classes_are_named_as_they_come_and_only_as_many_as_there_are_places():
    reader = ScoreReader(score_bundle(places=2))
    reader.pmf((("7", 0.9),), {"7": "car"})
    reader.pmf((("2", 0.9),), {})
    assert reader.names == ["car", "2"]
    assert reader.pmf((("9", 0.9),), {}) is None  # no place is left


def test_fusers_that_need_features_are_refused_with_those_that_do_not():
    with pytest.raises(BundleError, match="needs networks.*choose one of ema"):
        score_bundle().fuser("ella")
