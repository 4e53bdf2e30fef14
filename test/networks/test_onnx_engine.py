"""Graphs of networks as a bundle brings them."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.types.errors import BundleError

onnx = pytest.importorskip("onnx")
SIZE, WIDTH = 4, 2


def graph(weights: str) -> bytes:
    """A trunk whose weights are said to stand in a file; empty: they stand in the graph."""
    helper, kinds = onnx.helper, onnx.TensorProto
    weight = helper.make_tensor(
        "w",
        kinds.FLOAT,
        [SIZE * SIZE * 3, WIDTH],
        np.ones((SIZE * SIZE * 3, WIDTH), "<f4").tobytes(),
        raw=True,
    )
    if weights:
        weight.ClearField("raw_data")
        weight.data_location = kinds.EXTERNAL
        weight.external_data.add(key="location", value=weights)
    nodes = [
        helper.make_node("Cast", ["crops"], ["numbers"], to=kinds.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["row"]),
        helper.make_node("MatMul", ["row", "w"], ["features"]),
    ]
    crops = helper.make_tensor_value_info("crops", kinds.UINT8, ["n", SIZE, SIZE, 3])
    features = helper.make_tensor_value_info("features", kinds.FLOAT, ["n", WIDTH])
    made = helper.make_graph(nodes, "trunk", [crops], [features], [weight])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(made, opset_imports=[opset], ir_version=8).SerializeToString()


def test_weights_in_a_file_are_never_read(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.bin").write_bytes(np.ones((SIZE * SIZE * 3, WIDTH), "<f4").tobytes())
    crops = np.ones((1, SIZE, SIZE, 3), np.uint8)
    (features,) = Trunks([graph("")], SIZE, "cpu")(crops)
    np.testing.assert_array_equal(features, np.full((1, WIDTH), SIZE * SIZE * 3))
    with pytest.raises(BundleError, match="refuses the graph"):
        Trunks([graph("weights.bin")], SIZE, "cpu")
