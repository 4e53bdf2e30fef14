"""The fitted warning model: the way into a bundle and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lla_fusion_ros.types.errors import BundleError
from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.model import WarningModel
from support.feature_world import FeatureWorld
from support.warned_tracks import scores_along


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


@pytest.fixture(scope="module")
def model(world) -> WarningModel:
    return fit_warnings(world.posterior, world.known(60), world.strange(40))


def test_a_model_survives_the_way_into_a_bundle_and_back(world, model) -> None:
    arrays, record = model.to_parts()
    again = WarningModel.from_parts(arrays, json.loads(json.dumps(record)))
    tracks = world.known(5)
    for a, b in zip(scores_along(world, model, tracks), scores_along(world, again, tracks), strict=True):
        np.testing.assert_array_equal(a.ood_score, b.ood_score)
        np.testing.assert_array_equal(a.p_values, b.p_values)


def test_a_record_without_its_parts_is_refused(model) -> None:
    arrays, record = model.to_parts()
    del record["switch"]
    with pytest.raises(BundleError, match="switch"):
        WarningModel.from_parts(arrays, record)
    with pytest.raises(BundleError, match="bank"):
        WarningModel.from_parts({}, model.to_parts()[1])


def test_a_record_of_an_older_file_loads_and_never_says_cannot_tell(world, model) -> None:
    arrays, record = model.to_parts()
    unknown = record.pop("unknown")
    record |= {**unknown, "ood": unknown["alarm"]}
    del record["unreadable"], record["alarm"]
    older = WarningModel.from_parts(arrays, record)
    older.check(world.posterior.networks, world.posterior.features)
    tracks = world.strange(5)
    for a, b in zip(scores_along(world, model, tracks), scores_along(world, older, tracks), strict=True):
        np.testing.assert_array_equal(a.p_values, b.p_values)


def test_a_detector_of_another_width_is_refused(world, model) -> None:
    arrays, record = model.to_parts()
    record["unknown"]["scale"] = [1.0]
    with pytest.raises(BundleError, match="scale"):
        WarningModel.from_parts(arrays, record).check(world.posterior.networks, world.posterior.features)


def test_scores_of_another_version_are_refused(model) -> None:
    arrays, record = model.to_parts()
    record["scores"] = ["entropy"]
    with pytest.raises(BundleError, match="calibrate the bundle again"):
        WarningModel.from_parts(arrays, record)
