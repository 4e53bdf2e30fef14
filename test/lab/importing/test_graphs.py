"""ONNX files of others: cut at their head, their preprocessing in front, or refused with a sentence."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from lla_fusion_ros.lab.importing.onnx_files import read_onnx
from lla_fusion_ros.lab.importing.preprocess import Preprocessing
from lla_fusion_ros.lab.importing.sources import from_onnx, from_torch
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.types.errors import InputError
from support import small_networks as small

IMAGENET = Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def crops(count=5, size=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3)).astype(np.uint8)


def logits(source, images):
    (features,) = Trunks([source.graph], source.size)(images)
    return features @ source.weight.T + source.bias


def expected(module, images, wanted):
    mean, std = (np.array(values, np.float32) for values in (wanted.mean, wanted.std))
    pixels = (images[..., ::-1] if wanted.colours == "bgr" else images) * np.float32(wanted.scale / 255)
    with torch.no_grad():
        return module(torch.from_numpy(((pixels - mean) / std).transpose(0, 3, 1, 2).copy())).numpy()


@pytest.mark.parametrize("make", [small.resnet, small.mobilenet, small.mlp], ids=lambda make: make.__name__)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_head_on_trunk_gives_the_logits_of_the_network(make, batch, tmp_path):
    module = small.made(make)
    source = from_onnx(small.write(module, tmp_path / "a.onnx", batch=batch), IMAGENET)
    np.testing.assert_allclose(logits(source, crops()), expected(module, crops(), IMAGENET), atol=1e-4)
    assert source.size == 16 and source.weight.shape[0] == 3


def test_a_softmax_in_the_graph_is_undone(tmp_path):
    module = small.made(small.softmax_inside)
    source = from_onnx(small.write(module, tmp_path / "a.onnx"), IMAGENET)
    np.testing.assert_allclose(logits(source, crops()), expected(module[:-1], crops(), IMAGENET), atol=1e-4)


@pytest.mark.parametrize(
    "wanted", [Preprocessing(scale=255.0), Preprocessing((0.5,), (0.25,), colours="bgr")]
)
def test_scale_and_colours_are_those_of_the_network(wanted, tmp_path):
    module = small.made(small.resnet)
    source = from_onnx(small.write(module, tmp_path / "a.onnx"), wanted)
    np.testing.assert_allclose(
        logits(source, crops()), expected(module, crops(), wanted), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.FLOAT16])
@pytest.mark.parametrize(
    "shape, axes",
    [(["n", 3, 8, 8], (0, 3, 1, 2)), (["n", 8, 8, 3], (0, 1, 2, 3)), ([2, 3, "h", "w"], (0, 3, 1, 2))],
)
def test_axes_and_types_of_the_input_are_read_from_the_graph(shape, axes, kind, tmp_path):
    model = small.linear(shape, kind)
    onnx.save(model, tmp_path / "a.onnx")
    source = from_onnx(tmp_path / "a.onnx", Preprocessing(size=8))
    images = crops(size=8)
    given = images.transpose(axes).astype(helper.tensor_dtype_to_np_dtype(kind))
    given = given if kind == TensorProto.UINT8 else (given / 255).astype(given.dtype)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"image": given[:2]})
    np.testing.assert_allclose(
        logits(source, images)[:2], wanted, atol=2e-2 if kind == TensorProto.FLOAT16 else 1e-4
    )


def test_a_layer_or_a_tensor_can_be_named(tmp_path):
    onnx.save(small.linear(["n", 3, 8, 8]), tmp_path / "a.onnx")
    head = from_onnx(tmp_path / "a.onnx", Preprocessing(), "head")
    np.testing.assert_array_equal(head.bias, from_onnx(tmp_path / "a.onnx", Preprocessing()).bias)
    features = from_onnx(tmp_path / "a.onnx", Preprocessing(), "activation")
    assert features.weight is None
    assert Trunks([features.graph], 8)(crops(2, 8))[0].shape == (2, 6)
    with pytest.raises(InputError, match="neither a layer nor a tensor 'nothing'"):
        from_onnx(tmp_path / "a.onnx", Preprocessing(), "nothing")


def hostile(kind, path):
    model = small.linear(["n", 3, 8, 8])
    if kind == "control flow":
        branch = helper.make_graph(
            [helper.make_node("Identity", ["phi"], ["x"])],
            "branch",
            [],
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        )
        model.graph.node.insert(
            4, helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
        )
    elif kind == "custom operator":
        model.graph.node.insert(4, helper.make_node("Evil", ["phi"], ["y"], domain="my.company"))
    elif kind == "too much memory":
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([200_000, 200_000]), "huge"))
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1, np.float32), "zero"))
        model.graph.node.insert(4, helper.make_node("Expand", ["zero", "huge"], ["giant"]))
        model.graph.node.insert(5, helper.make_node("ReduceSum", ["giant"], ["sum"], keepdims=0))
        model.graph.node.insert(6, helper.make_node("Add", ["phi", "sum"], ["phi2"]))
        model.graph.node[7].input[0] = "phi2"
    elif kind == "external data":
        onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights.bin")
        return
    elif kind == "two inputs":
        model.graph.input.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, [1]))
    elif kind == "an unknown operator":
        model.graph.node[3].op_type = "Reluu"
    data = model.SerializeToString()
    path.write_bytes(
        {"truncated": data[: len(data) // 2], "no file of ONNX": b"\x89PNG not this"}.get(kind, data)
    )


@pytest.mark.parametrize(
    "kind, sentence",
    [
        ("control flow", "has control flow \\(If\\)"),
        ("custom operator", "custom operator my.company::Evil"),
        ("external data", "keeps its weights in other files"),
        ("truncated", "truncated"),
        ("no file of ONNX", "is no ONNX file"),
        ("two inputs", "2 inputs"),
        ("an unknown operator", "no valid ONNX graph"),
        ("too much memory", "does not run"),
    ],
)
def test_a_hostile_graph_is_refused_with_a_sentence(kind, sentence, tmp_path):
    hostile(kind, tmp_path / "a.onnx")
    with pytest.raises(InputError, match=sentence):
        from_onnx(tmp_path / "a.onnx", Preprocessing())


def test_a_graph_without_a_linear_head_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not end in a linear layer .* GlobalAveragePool"):
        from_onnx(small.write(small.made(small.headless), tmp_path / "a.onnx"), Preprocessing())


def test_a_file_of_two_gigabytes_is_refused_unread(tmp_path):
    with (tmp_path / "a.onnx").open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(InputError, match="2 GB or more"):
        read_onnx(tmp_path / "a.onnx")


def test_a_torch_module_gives_the_same_as_its_onnx_file(tmp_path):
    module = small.made(small.resnet)
    torch.save({"state_dict": {f"module.{k}": v for k, v in module.state_dict().items()}}, tmp_path / "a.pth")
    by_torch = from_torch(
        "support.small_networks:resnet",
        tmp_path / "a.pth",
        Preprocessing(IMAGENET.mean, IMAGENET.std, size=16),
    )
    by_onnx = from_onnx(small.write(module, tmp_path / "a.onnx"), IMAGENET)
    np.testing.assert_allclose(logits(by_torch, crops()), logits(by_onnx, crops()), atol=1e-5)


def test_weights_that_would_run_code_are_refused(tmp_path):
    torch.save(small.made(small.resnet), tmp_path / "whole.pth")
    with pytest.raises(InputError, match="without running code"):
        from_torch("support.small_networks:resnet", tmp_path / "whole.pth", Preprocessing(size=16))
    with pytest.raises(InputError, match="no nn.Linear"):
        from_torch("support.small_networks:headless", None, Preprocessing(size=16))
    with pytest.raises(InputError, match="package.module:function"):
        from_torch("support.small_networks:nothing", None, Preprocessing(size=16))
