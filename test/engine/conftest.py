"""A world without images, and a model of it with warnings and the fuser `pool`."""

from __future__ import annotations

import pytest

from lla_fusion_ros.warnings.fit import fit_warnings
from support.feature_world import FeatureWorld, WorldModel


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld(seed=3)


@pytest.fixture(scope="module")
def model(world) -> WorldModel:
    return WorldModel(world, fit_warnings(world.posterior, world.known(150), world.strange(80)), "pool")
