"""From an ONNX file that somebody made to a trunk and a head, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from lla_fusion_ros.types.errors import InputError

LARGEST = 2 * 1024**3 - 1  # what a protobuf message can hold
_OWN_DOMAINS = {"", "ai.onnx", "com.microsoft"}  # operators of ONNX Runtime itself
_CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}
# What may stand between the head and the output: it changes neither the order nor the number of classes.
_AFTER_HEAD = {"Softmax", "LogSoftmax", "Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze", "Add"}


@dataclass(frozen=True, slots=True)
class CutGraph:
    """A graph that ends in features.

    Attributes:
        model: its one output is [n, d].
        weight, bias: of the head that was cut off, None where a tensor was named.    [classes, d], [classes]
        layer: the name of that head, or of the tensor.
        dropped: operators that stood after the head.
    """

    model: onnx.ModelProto
    weight: np.ndarray | None
    bias: np.ndarray | None
    layer: str
    dropped: tuple[str, ...] = ()


def read_onnx(path: Path) -> onnx.ModelProto:
    """A model whose every operator is one of ONNX Runtime's own; everything else is refused."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise InputError(
                f"'{path}' has {size / 1e9:.1f} GB; an ONNX graph of 2 GB or more cannot be imported"
            )
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from None
    return parse_onnx(data, str(path))


def parse_onnx(data: bytes, where: str) -> onnx.ModelProto:
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # of protobuf, whichever of its implementations is installed
        raise InputError(f"'{where}' is no ONNX file, or is truncated: {_line(error)}") from None
    if not model.graph.node:
        raise InputError(f"'{where}' is no ONNX file, or is truncated: it holds no operators")
    _refuse_external(model.graph, where)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    for node in model.graph.node:
        if node.domain not in _OWN_DOMAINS:
            raise InputError(
                f"'{where}' uses the custom operator {node.domain}::{node.op_type}; only operators of ONNX "
                "Runtime are run: export the network without it"
            )
        if node.op_type in _CONTROL_FLOW or any(each.g.node or each.graphs for each in node.attribute):
            raise InputError(
                f"'{where}' has control flow ({node.op_type}); a network must take the same way for every "
                "crop: export it from a traced model"
            )
    try:
        onnx.checker.check_model(model)
    except Exception as error:
        raise InputError(f"'{where}' is no valid ONNX graph, or is truncated: {_line(error)}") from None
    return model


def cut_at_head(model: onnx.ModelProto, where: str, layer: str = "") -> CutGraph:
    """The graph without its last linear layer, which is found by walking back from the first output.

    Args:
        layer: the name of a Gemm or MatMul to take in its place, or of a tensor that holds the features.
    """
    makers = {output: node for node in model.graph.node for output in node.output}
    constants = _constants(model)
    if layer:
        head = next((node for node in model.graph.node if node.name == layer), makers.get(layer))
        if head is None:
            raise InputError(f"'{where}' has neither a layer nor a tensor '{layer}'")
        if head.op_type not in ("Gemm", "MatMul") or head.input[1] not in constants:
            output = layer if layer in makers else head.output[0]
            return CutGraph(_ending_in(model, output), None, None, layer)
        dropped: list[str] = []
    else:
        head, dropped = _last_linear(model, makers, constants, where)
    weight, bias = _head_values(head, model, constants)
    name = head.name or head.output[0]
    return CutGraph(_ending_in(model, head.input[0]), weight, bias, name, tuple(dropped))


def _last_linear(
    model: onnx.ModelProto, makers: dict[str, onnx.NodeProto], constants: dict[str, np.ndarray], where: str
) -> tuple[onnx.NodeProto, list[str]]:
    dropped: list[str] = []
    tensor = model.graph.output[0].name
    while (node := makers.get(tensor)) is not None:
        if node.op_type in ("Gemm", "MatMul") and len(node.input) > 1 and node.input[1] in constants:
            return node, dropped
        if node.op_type not in _AFTER_HEAD:
            break
        dropped.append(node.op_type)
        tensor = next((each for each in node.input if each not in constants), "")
    found = "nothing" if node is None else f"{node.op_type} '{node.name or tensor}'"
    raise InputError(
        f"'{where}' does not end in a linear layer (Gemm or MatMul with stored weights): its output "
        f"comes from {found}; name the layer with --layer, or a tensor of features together with --head new"
    )


def _head_values(
    head: onnx.NodeProto, model: onnx.ModelProto, constants: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """W [classes, d] and b [classes] of a Gemm, or of a MatMul and the Add after it."""
    stored = constants[head.input[1]].astype(np.float64)
    if stored.ndim != 2:
        raise InputError(f"the layer '{head.name}' has weights of shape {stored.shape}; a head has two axes")
    if head.op_type == "Gemm":
        options = {each.name: onnx.helper.get_attribute_value(each) for each in head.attribute}
        weight = (stored if options.get("transB") else stored.T) * options.get("alpha", 1.0)
        given = constants.get(head.input[2]) if len(head.input) > 2 else None
        bias = np.zeros(len(weight)) if given is None else given.astype(np.float64) * options.get("beta", 1.0)
    else:
        weight, bias = stored.T, np.zeros(stored.shape[1])
        after = next((node for node in model.graph.node if head.output[0] in node.input), None)
        if after is not None and after.op_type == "Add":
            other = next(each for each in after.input if each != head.output[0])
            bias = constants[other].astype(np.float64) if other in constants else bias
    return weight, np.broadcast_to(bias.reshape(-1), len(weight)).copy()


def _ending_in(model: onnx.ModelProto, tensor: str) -> onnx.ModelProto:
    """A copy with this tensor, flattened to [n, d], as its only output, and nothing that it does not need."""
    makers = {output: node for node in model.graph.node for output in node.output}
    needed: set[int] = set()
    names, waiting = {tensor}, [tensor]
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            fresh = [name for name in node.input if name and name not in names]
            names.update(fresh)
            waiting += fresh
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    del cut.graph.node[:], cut.graph.initializer[:], cut.graph.output[:], cut.graph.value_info[:]
    cut.graph.node.extend(node for node in model.graph.node if id(node) in needed)
    cut.graph.node.append(onnx.helper.make_node("Flatten", [tensor], ["flat_features"], axis=1))
    to_single = {"to": onnx.TensorProto.FLOAT}
    cut.graph.node.append(onnx.helper.make_node("Cast", ["flat_features"], ["features"], **to_single))
    cut.graph.initializer.extend(each for each in model.graph.initializer if each.name in names)
    cut.graph.output.append(onnx.helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, None))
    return cut


def _constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Stored tensors by name, also those of Constant nodes and of weights that are transposed or renamed."""
    found = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in model.graph.node:  # in topological order
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
        elif node.op_type == "Transpose" and node.input[0] in found:
            axes = next((list(each.ints) for each in node.attribute if each.name == "perm"), None)
            found[node.output[0]] = found[node.input[0]].transpose(axes)
    return found


def _refuse_external(graph: onnx.GraphProto, where: str) -> None:
    for tensor in _tensors(graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise InputError(
                f"'{where}' keeps its weights in other files ('{tensor.name}'); save it as one file, in "
                "Python `onnx.save(onnx.load(FILE), OTHER)`"
            )


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner) if inner.node else ()


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
