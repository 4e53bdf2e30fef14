"""A bundle's networks as ONNX graphs: the same numbers without torch, or one graph with their variances."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from lla_fusion_ros.bundle import load_bundle, make_bundle, save_bundle
from lla_fusion_ros.bundle.bundle import ONNX, graph_tensors
from lla_fusion_ros.bundle.meta import BundleMeta
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.importing.export import as_one_graph, exported
from lla_fusion_ros.lab.importing.head import leading_directions
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.networks.heads import Head, seen_features
from lla_fusion_ros.networks.network import share_layers
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from support.tiny_bundle import tiny_bundle

ARCHITECTURES = (None, {"name": "dense", "size": 16, "hidden": [9, 6], "image_channels": 3})


def crops(count=40, size=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3)).astype(np.uint8)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_exported_bundle_says_the_same_without_torch(architecture, tmp_path):
    bundle = tiny_bundle(architecture=architecture)
    save_bundle(exported(bundle), tmp_path / "a.safetensors")
    vehicle = load_bundle(tmp_path / "a.safetensors")
    assert not vehicle.for_torch and Classifier(vehicle).engine == "onnxruntime"
    for plain, graph in zip(vars_of(bundle), vars_of(vehicle), strict=True):
        np.testing.assert_allclose(graph, plain, rtol=1e-3, atol=1e-4)


def test_layers_that_networks_share_stand_once_in_file_and_graph(tmp_path):
    plain = tiny_bundle(networks=3)
    members = plain.members()
    share_layers(members, 2)
    save_bundle(make_bundle(plain.meta, members, plain.posterior()), tmp_path / "a.safetensors")
    bundle = load_bundle(tmp_path / "a.safetensors")
    weights = {name for name in bundle.tensors if name.endswith(("trunk.0.weight", "trunk.3.weight"))}
    assert weights == {"network.0.trunk.0.weight", "network.0.trunk.3.weight"}
    for first, second in zip(bundle.members(), members, strict=True):
        assert all(
            torch.equal(first.state_dict()[name], value) for name, value in second.state_dict().items()
        )
    vehicle = exported(bundle)
    nodes = onnx.load_model_from_string(vehicle.graphs("float32")[0]).graph.node
    assert [node.op_type for node in nodes].count("Conv") == 2 + 3
    for one, graph in zip(vars_of(bundle), vars_of(vehicle), strict=True):
        np.testing.assert_allclose(graph, one, rtol=1e-3, atol=1e-4)


def vars_of(bundle):
    views = Classifier(bundle, "cpu")(crops(7))
    return views.logits, views.features, bundle.posterior().variance(views.features)


def test_eight_bits_are_measured_on_crops_and_chosen_by_auto():
    vehicle = exported(tiny_bundle(), crops(64))
    assert Classifier(vehicle, precision="auto").precision == "int8"
    assert Classifier(vehicle, precision="float32").precision == "float32"
    with pytest.raises(InputError, match="in float32, int8, not in float16"):
        Classifier(vehicle, precision="float16")


def test_between_two_convolutions_nothing_is_unpacked():
    (small,) = exported(tiny_bundle(), crops(64)).graphs("int8")
    nodes = onnx.load_model_from_string(small).graph.node
    after = {name: node.op_type for node in nodes for name in node.input}
    pooled = [node for node in nodes if node.op_type == "MaxPool"]
    assert pooled and {after[node.output[0]] for node in pooled} == {"QuantizeLinear"}


def test_graphs_of_eight_bits_that_say_something_else_are_refused(monkeypatch):
    other = exported(tiny_bundle(seed=1)).graphs("float32")[0]
    monkeypatch.setattr("lla_fusion_ros.lab.importing.export.in_eight_bits", lambda graph, crops: other)
    sure = tiny_bundle()
    heads = {name: 50 * each for name, each in sure.tensors.items() if name.endswith("head.weight")}
    with pytest.raises(InputError, match="do not survive the export in int8"):
        exported(replace(sure, tensors=sure.tensors | heads), crops(64))


def test_a_provider_that_is_not_there_is_named(capsys):
    vehicle = exported(tiny_bundle())
    classify = Classifier(vehicle, providers=("tensorrt", "cpu"))
    assert classify.device == "cpu" and "no provider tensorrt here" in classify.notes[0]
    with pytest.raises(InputError, match="no provider tensorrt here.* add cpu"):
        Classifier(vehicle, providers=("tensorrt",))
    with pytest.raises(InputError, match="'gpu' is unknown"):
        Classifier(vehicle, providers=("gpu",))
    with pytest.raises(InputError, match="holds no ONNX graphs"):
        Classifier(tiny_bundle(), engine="onnxruntime")


def wide_bundle(width, classes, size=8, seed=0):
    """A trunk of `width` features for `classes` classes, its posterior seen along a basis."""
    from lla_fusion_ros.lab.importing.head import seen_width
    from support.small_networks import handmade

    rng = np.random.default_rng(seed)
    values = 3 * size * size
    nodes = [
        onnx.helper.make_node("Cast", ["image"], ["float"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Flatten", ["float"], ["flat"], axis=1),
        onnx.helper.make_node("MatMul", ["flat", "w"], ["out"]),
    ]
    weight = (rng.normal(size=(values, width)) / 500).astype(np.float32)
    model = handmade(nodes, {"w": weight}, ["n", size, size, 3], onnx.TensorProto.UINT8)
    phi = crops(300, size).reshape(300, -1).astype(np.float32) @ weight
    seen = seen_width(width, 1, classes)
    basis = leading_directions(phi, seen)
    rows = seen_features(phi, basis).astype(np.float64)
    block = rows.T @ rows / classes + np.eye(seen + 2)
    factors = np.broadcast_to(np.linalg.cholesky(block), (1, classes, seen + 2, seen + 2)).copy()
    heads = [Head(0, (rng.normal(size=(classes, width)) / 9).astype("f"), np.zeros(classes, "f"), basis)]
    meta = BundleMeta(
        architecture={"name": ONNX},
        networks=1,
        class_names=tuple(f"class {index}" for index in range(classes)),
        input_size=size,
        crop_margin=0.0,
        normalisation={},
        prior_precision=1.0,
        posterior_temperature=1.0,
        default_fuser="mean_pmf",
        trunks=(0,),
    )
    graph = model.SerializeToString()
    return make_bundle(meta, graph_tensors({"float32": [graph]}, heads), EnsemblePosterior(factors, 1.0))


@pytest.mark.parametrize("width", [768, 1280, 2048])
def test_the_posterior_of_a_thousand_classes_keeps_to_its_memory(width, tmp_path):
    bundle = wide_bundle(width, 1000)
    assert bundle.posterior().factors.nbytes <= 64 * 2**20
    views = Classifier(bundle)(crops(2, 8))
    assert views.features.shape == (2, 1, 91)
    assert (bundle.posterior().single_variance(views.features) > 0).all()
    save_bundle(bundle, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").stat().st_size < 40e6


@pytest.mark.parametrize("make", [lambda: exported(tiny_bundle()), lambda: wide_bundle(200, 5)])
def test_one_graph_gives_logits_and_laplace_variances(make, tmp_path):
    bundle = make()
    data = as_one_graph(bundle).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    images = crops(5, bundle.input_size)
    (name,) = (each.name for each in session.get_inputs())
    logits, variance = session.run(["logits", "variance"], {name: images})
    views = Classifier(bundle)(images)
    np.testing.assert_allclose(logits, views.logits, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(variance, bundle.posterior().variance(views.features), rtol=2e-2)


def test_export_from_the_command_line(tmp_path, capsys):
    save_bundle(tiny_bundle(), tmp_path / "a.safetensors")
    assert main(["export", str(tmp_path / "a.safetensors"), "--out", str(tmp_path / "a.onnx")]) == 0
    assert main(["export", str(tmp_path / "a.safetensors"), "--out", str(tmp_path / "a.txt")]) == 1
    assert "must end in .safetensors" in capsys.readouterr().err
