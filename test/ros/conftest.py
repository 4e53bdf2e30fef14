"""What tests of nodes share: a tiny model on disk, and somebody who listens."""

from __future__ import annotations

import pytest

from lla_fusion_ros.bundle import save_bundle
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="session")
def bundle():
    return tiny_bundle()


@pytest.fixture(scope="session")
def model(bundle, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    save_bundle(bundle, path)
    return str(path)


@pytest.fixture
def listener(ros_graph):
    return ros_graph.node("listener")
