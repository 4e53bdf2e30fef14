"""ONNX files that are valid but unusual, and malformed ones: imported as they are meant, or one sentence."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from lla_fusion_ros.bundle import make_bundle
from lla_fusion_ros.bundle.bundle import ONNX, graph_tensors
from lla_fusion_ros.bundle.meta import BundleMeta
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.importing.export import as_one_graph, in_eight_bits
from lla_fusion_ros.lab.importing.onnx_files import MOST_CALLS
from lla_fusion_ros.lab.importing.preprocess import Preprocessing
from lla_fusion_ros.lab.importing.sources import from_onnx
from lla_fusion_ros.networks.heads import Head
from lla_fusion_ros.networks.onnx_engine import OnnxEngine, Trunks
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import BundleError, InputError, reason

node = helper.make_node
SIDE, VALUES, WIDTH, CLASSES = 8, 3 * 8 * 8, 6, 4
_RNG = np.random.default_rng(0)
W1 = (_RNG.normal(size=(VALUES, WIDTH)) / 20).astype(np.float32)
W2 = _RNG.normal(size=(WIDTH, CLASSES)).astype(np.float32)
B2 = _RNG.normal(size=CLASSES).astype(np.float32)
TRUNK = (
    node("Flatten", ["image"], ["flat"], axis=1),
    node("MatMul", ["flat", "w1"], ["hidden"]),
    node("Relu", ["hidden"], ["phi"]),
)
GEMM = node("Gemm", ["phi", "w2", "b2"], ["out"])


def net(nodes=(*TRUNK, GEMM), outputs=("out",), functions=(), **more: np.ndarray) -> onnx.ModelProto:
    """A classifier; `more` are stored tensors, or replace them."""
    stored = {"w1": W1, "w2": W2, "b2": B2} | {name: np.asarray(value) for name, value in more.items()}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)


def function(name, nodes, inputs=("x",), version=17):
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, inputs, ["y"], nodes, opsets)


def crops(count=5):
    return np.random.default_rng(1).integers(0, 256, (count, SIDE, SIDE, 3)).astype(np.uint8)


def imported(model, tmp_path, layer=""):
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    return from_onnx(tmp_path / "a.onnx", Preprocessing(), layer)


def check_says_the_same(model, tmp_path):
    source = imported(model, tmp_path)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    images = np.ascontiguousarray(crops().transpose(0, 3, 1, 2)).astype(np.float32) / 255
    expected = session.run(None, {session.get_inputs()[0].name: images})[0]
    (features,) = Trunks([source.graph], SIDE, "cpu")(crops())
    np.testing.assert_allclose(features @ source.weight.T + source.bias, expected, atol=1e-4)


NAMES = ("features", "features_flat", "crops", "crops_0", "crops_1", "crops_1_constant")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("old", ["image", "phi", "hidden", "w1"])
def test_a_tensor_may_have_any_name(old, name, tmp_path):
    model = net()
    graph = model.graph
    for names in (part for each in graph.node for part in (each.input, each.output)):
        names[:] = [name if each == old else each for each in names]
    for each in (*graph.input, *graph.output, *graph.initializer):
        each.name = name if each.name == old else each.name
    check_says_the_same(model, tmp_path)


def test_functions_of_the_file_are_inlined(tmp_path):
    own = (
        function("head", [node("Gemm", ["x", "w", "b"], ["y"])], ("x", "w", "b")),
        function("inner", [node("Relu", ["x"], ["y"])], version=15),
        function("outer", [node("inner", ["x"], ["y"], domain="own")]),
    )
    calls = (
        *TRUNK[:2],
        node("outer", ["hidden"], ["phi"], domain="own"),
        node("head", ["phi", "w2", "b2"], ["out"], domain="own"),
    )
    (tmp_path / "plain").mkdir()
    source, plain = imported(net(calls, functions=own), tmp_path), imported(net(), tmp_path / "plain")
    np.testing.assert_array_equal(source.weight, plain.weight)
    np.testing.assert_array_equal(source.bias, plain.bias)
    first, second = (Trunks([each.graph], SIDE, "cpu")(crops())[0] for each in (source, plain))
    np.testing.assert_array_equal(first, second)


def test_stored_tensors_may_be_listed_among_the_inputs_as_in_old_files(tmp_path):
    model = net()
    model.ir_version = 3
    for each in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    check_says_the_same(model, tmp_path)


def calls_of_calls(depth, each):
    """`each ** depth` operators."""
    made = []
    for level in range(depth):
        links = ["x", *(f"t{number}" for number in range(each - 1)), "y"]
        name, domain = ("Relu", "") if level == depth - 1 else (f"f{level + 1}", "own")
        steps = [node(name, [a], [b], domain=domain) for a, b in zip(links[:-1], links[1:], strict=True)]
        made.append(function(f"f{level}", steps))
    return net((*TRUNK[:2], node("f0", ["hidden"], ["phi"], domain="own"), GEMM), functions=made)


def gemm(weight="w2", bias="b2", **attributes):
    return (*TRUNK, node("Gemm", ["phi", weight, bias], ["out"], **attributes))


def transposed(perm):
    return (*TRUNK, node("Transpose", ["wt"], ["w"], perm=perm), node("Gemm", ["phi", "w"], ["out"]))


def after(*nodes):
    return (*TRUNK, node("MatMul", ["phi", "w2"], ["p"]), *nodes)


def external():
    tensor = numpy_helper.from_array(np.ones((1, 1), np.float32), "inner")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/hostname")
    steps = [node("Constant", [], ["c"], value=tensor), node("Add", ["x", "c"], ["y"])]
    call = (*TRUNK[:2], node("f", ["hidden"], ["phi"], domain="own"), GEMM)
    return net(call, functions=[function("f", steps)])


def sparse():
    model = net()
    values = helper.make_tensor("other", TensorProto.FLOAT, [1], [1.0])
    values.ClearField("float_data")
    values.data_location = TensorProto.EXTERNAL
    values.external_data.add(key="location", value="w.bin")
    places = helper.make_tensor("places", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 2]))
    return model


def bad_tensor(name, field, value, **stored):
    model = net(**stored)
    tensor = next(each for each in model.graph.initializer if each.name == name)
    if field == "dims":
        tensor.dims[:] = value
    else:
        setattr(tensor, field, value)
    return model


def flat_of(values):
    model = net((node("MatMul", ["image", "w1"], ["phi"]), GEMM))
    model.graph.input[0].type.tensor_type.shape.CopyFrom(
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", values]).type.tensor_type.shape
    )
    return model


def one_row():
    shape = np.array([1, -1])
    return net(
        (*TRUNK, node("Reshape", ["phi", "s"], ["r"]), node("Gemm", ["r", "w2", "b2"], ["out"])), s=shape
    )


def over_crops(operator, *then):
    return net((*TRUNK, node(operator, ["phi"], ["r"], axes=[0], keepdims=1), *then))


HEADS_THAT_ARE_NOT_ALL = {
    "a bias that is no stored tensor": lambda: net(
        (*TRUNK, node("ReduceMax", ["phi"], ["b"], axes=[1]), node("Gemm", ["phi", "w2", "b"], ["out"]))
    ),
    "a sum of two heads": lambda: net(
        after(node("Gemm", ["phi", "w2", "b2"], ["q"]), node("Add", ["q", "p"], ["out"]))
    ),
    "a head added to itself": lambda: net(after(node("Add", ["p", "p"], ["out"]))),
    "a bias after the head": lambda: net(
        (*TRUNK, node("Gemm", ["phi", "w2", "b2"], ["q"]), node("Add", ["q", "more"], ["out"])), more=B2
    ),
    "a bias after something else": lambda: net(
        after(node("Identity", ["p"], ["q"]), node("Add", ["q", "b2"], ["out"]))
    ),
    "a bias of numbers": lambda: net(
        after(
            node("Constant", [], ["b"], value_floats=[1.0, 2.0, 3.0, 4.0]), node("Add", ["p", "b"], ["out"])
        )
    ),
}


@pytest.mark.parametrize("what", HEADS_THAT_ARE_NOT_ALL)
def test_a_head_that_does_not_give_what_the_network_gives_is_not_kept(what, tmp_path):
    with pytest.raises(InputError, match="is neither what its last layer '.*' gives nor the softmax"):
        imported(HEADS_THAT_ARE_NOT_ALL[what](), tmp_path)
    source = from_onnx(tmp_path / "a.onnx", Preprocessing(), keep_head=False)
    assert Trunks([source.graph], SIDE, "cpu")(crops())[0].shape == (5, WIDTH)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("factor", [1.0, 1e5])
def test_a_head_before_a_softmax_is_kept_however_sure_it_is(operator, factor, tmp_path):
    head = node("Gemm", ["phi", "w2", "b2"], ["logits"])
    model = net((*TRUNK, head, node(operator, ["logits"], ["out"], axis=1)), w2=W2 * np.float32(factor))
    assert imported(model, tmp_path).weight.shape == (CLASSES, WIDTH)


SENTENCES = {
    "bias of three": (lambda: net(gemm(), b2=B2[:3]), "does not run: .*bias shape"),
    "bias of two rows": (
        lambda: net(after(node("Add", ["p", "b"], ["out"])), b=np.zeros((2, 4), np.float32)),
        r"bias of shape \(2, 4\) for 4 classes",
    ),
    "bias of none": (lambda: net(gemm(), b2=B2[:0]), "does not run: .*bias shape"),
    "no classes": (lambda: net(gemm(bias=""), w2=W2[:, :0]), r"weights of shape \(6, 0\)"),
    "text as weights": (lambda: net(gemm(), w2=np.full((6, 4), "a", object)), "tensor.string"),
    "nan in the head": (lambda: net(gemm(), w2=W2 * np.nan), "weights that are NaN or infinite"),
    "nan in the features": (lambda: net(w1=W1 * np.nan), "NaN or infinity on crops of noise; are --mean"),
    "axis that is not there": (lambda: net(transposed([0, 5]), wt=W2.T.copy()), "perm"),
    "axis twice": (lambda: net(transposed([0, 0]), wt=W2.T.copy()), "perm"),
    "constant of nothing": (
        lambda: net((node("Constant", [], ["w"]), *gemm("w"))),
        "Constant node: has no data",
    ),
    "no output": (lambda: net(outputs=()), "has no output"),
    "crops in one row": (one_row, "does not run with two crops at once, as it does with one"),
    "mean of all crops": (
        lambda: over_crops("ReduceMean", node("Gemm", ["r", "w2", "b2"], ["out"])),
        r"features of shape \(1, 6\) for two crops",
    ),
    "minus the mean of all crops": (
        lambda: over_crops(
            "ReduceMean", node("Sub", ["phi", "r"], ["q"]), node("Gemm", ["q", "w2", "b2"], ["out"])
        ),
        "does not say the same of a crop alone",
    ),
    "features by chance": (
        lambda: net(
            (*TRUNK[:2], node("RandomNormalLike", ["hidden"], ["phi"]), GEMM),
        ),
        "does not say the same of a crop alone",
    ),
    "tensor of a type that is none": (lambda: bad_tensor("w2", "data_type", 99), "valid data type"),
    "tensor of more than its shape": (
        lambda: bad_tensor("idle", "dims", [2], idle=np.zeros(4)),
        "'idle' cannot be read",
    ),
    "values below zero": (lambda: flat_of(-192), "any x any pixels"),
    "function of itself": (
        lambda: net(
            (*TRUNK[:2], node("f", ["hidden"], ["phi"], domain="own"), GEMM),
            functions=[function("f", [node("f", ["x"], ["y"], domain="own")])],
        ),
        "functions that call themselves",
    ),
    "functions too deep": (lambda: calls_of_calls(MOST_CALLS + 1, 1), "too deep"),
    "functions of a billion operators": (lambda: calls_of_calls(9, 10), "more than 1,000,000 operators"),
    "function with too many inputs": (
        lambda: net(
            (*TRUNK[:2], node("f", ["hidden", "hidden"], ["phi"], domain="own"), GEMM),
            functions=[function("f", [node("Relu", ["x"], ["y"])])],
        ),
        "no valid ONNX graph",
    ),
    "function with control flow": (
        lambda: net(
            (*TRUNK[:2], node("f", ["hidden"], ["phi"], domain="own"), GEMM),
            functions=[function("f", [node("If", ["x"], ["y"])])],
        ),
        r"control flow \(If\)",
    ),
    "function with weights elsewhere": (external, "no valid ONNX graph|in other files"),
    "sparse weights elsewhere": (sparse, "keeps its weights in other files"),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_a_malformed_graph_is_one_sentence(what, tmp_path):
    make, sentence = SENTENCES[what]
    with pytest.raises(InputError, match=sentence) as told:
        imported(make(), tmp_path)
    assert "\n" not in str(told.value) and len(str(told.value)) < 1000


def test_names_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a.onnx").write_bytes(net().SerializeToString().replace(b"hidden", b"hidd\xff\xfe"))
    with pytest.raises(InputError, match="not UTF-8"):
        from_onnx(tmp_path / "a.onnx", Preprocessing())


def test_the_command_line_says_one_sentence_and_nothing_else(tmp_path, capfd):
    (tmp_path / "a.onnx").write_bytes(net(gemm(), b2=B2[:3]).SerializeToString())
    words = ["import", "--onnx", str(tmp_path / "a.onnx"), "--dataset", "folders", "--root", str(tmp_path)]
    assert main([*words, "--out", str(tmp_path / "b.safetensors")]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("lla-fusion: import: ") and "bias" in line


def test_a_version_that_onnx_runtime_does_not_know_is_named():
    model = net()
    model.ir_version = 100
    with pytest.raises(BundleError, match="Unsupported model IR version: 100, max supported IR version"):
        Trunks([model.SerializeToString()], SIDE, "cpu")


def test_a_reason_keeps_its_end():
    place = "FAIL : /src/graph/model.cc:256 Model::Model(const A<int>&, B*) Unsupported: 14,\n at most 13"
    assert reason(RuntimeError(place)) == "FAIL : Unsupported: 14, at most 13"
    long = reason(RuntimeError("begin " + "x" * 5000 + " end"))
    assert long.startswith("begin") and long.endswith("end") and len(long) < 600
    assert reason(MemoryError()) == "MemoryError"


def test_a_bundle_whose_graph_takes_one_crop_at_a_time_is_refused_when_it_is_loaded():
    steps = (
        node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        node("Reshape", ["float", "s"], ["features"]),
    )
    model = net(steps, ("features",), s=np.array([1, -1]))
    model.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("image", TensorProto.UINT8, ["n", SIDE, SIDE, 3])
    )
    trunks = Trunks([model.SerializeToString()], SIDE, "cpu")
    head = Head(0, np.ones((CLASSES, VALUES), np.float32), np.zeros(CLASSES, np.float32))
    with pytest.raises(BundleError, match=r"gives \(1, 384\) for two crops"):
        OnnxEngine(trunks, [head], SIDE)


@pytest.mark.parametrize("name", ["logits", "variance", "laplace_1", "crops"])
def test_an_exported_graph_may_have_tensors_named_as_ours(name, tmp_path):
    model = net()
    for names in (part for each in model.graph.node for part in (each.input, each.output)):
        names[:] = [name if each == "hidden" else each for each in names]
    graph = imported(model, tmp_path).graph
    assert in_eight_bits(graph, crops(32))
    head = Head(0, W2.T.copy(), B2)
    meta = BundleMeta(
        architecture={"name": ONNX},
        networks=1,
        class_names=tuple("abcd"),
        input_size=SIDE,
        crop_margin=0.0,
        normalisation={},
        prior_precision=1.0,
        posterior_temperature=1.0,
        default_fuser="mean_pmf",
        trunks=(0,),
    )
    factors = np.broadcast_to(np.eye(WIDTH + 1), (1, CLASSES, WIDTH + 1, WIDTH + 1)).copy()
    bundle = make_bundle(meta, graph_tensors({"float32": [graph]}, [head]), EnsemblePosterior(factors, 1.0))
    whole = as_one_graph(bundle)
    session = onnxruntime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    logits, variance = session.run(None, {session.get_inputs()[0].name: crops()})
    assert logits.shape == variance.shape == (5, 1, CLASSES)
