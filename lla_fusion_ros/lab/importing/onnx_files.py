"""From an ONNX file that somebody made to a trunk and a head, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from onnx import numpy_helper

from lla_fusion_ros.types.errors import InputError, reason

LARGEST = 2 * 1024**3 - 1  # what a protobuf message can hold
MOST_OPERATORS = 1_000_000  # with those of functions, wherever they are called
MOST_CALLS = 50  # of functions within functions
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
    """

    model: onnx.ModelProto
    weight: np.ndarray | None
    bias: np.ndarray | None
    layer: str


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
        raise InputError(f"'{where}' is no ONNX file, or is truncated: {reason(error)}") from None
    if not model.graph.node:
        raise InputError(f"'{where}' is no ONNX file, or is truncated: it holds no operators")
    _refuse_external(model.graph, where)
    functions = {_key(each.domain, each.name, each): each.node for each in model.functions}
    if _count(model.graph.node, functions, where, (), {}) > MOST_OPERATORS:
        raise InputError(
            f"'{where}' has more than {MOST_OPERATORS:,} operators, those of its functions counted"
        )
    try:
        onnx.checker.check_model(model)
        if functions:
            typed = onnx.shape_inference.infer_shapes(model)  # without types no version is converted
            model = onnx.inliner.inline_local_functions(typed, convert_version=True)
    except Exception as error:
        raise InputError(f"'{where}' is no valid ONNX graph, or is truncated: {reason(error)}") from None
    _refuse_external(model.graph, where)  # once more: of its functions
    if not all(isinstance(name, str) for name in _names(model.graph)):
        raise InputError(f"'{where}' is no valid ONNX graph: the names of its tensors are not UTF-8")
    if not model.graph.output:
        raise InputError(f"'{where}' has no output; a classifier has one, its classes")
    _drop_stored_inputs(model)
    return model


def free_name(graph: onnx.GraphProto, wished: str) -> str:
    """The name, with underscores after it until no tensor has it, nor it with `_` and more after it."""
    taken = _names(graph)
    while any(name == wished or name.startswith(f"{wished}_") for name in taken):
        wished += "_"
    return wished


def _names(graph: onnx.GraphProto) -> set[str]:
    """Of all tensors; a name that is not UTF-8 is bytes."""
    names = {name for node in graph.node for name in (*node.input, *node.output)}
    stored = (*graph.initializer, *(each.values for each in graph.sparse_initializer))
    return names.union(each.name for each in (*graph.input, *graph.output, *stored))


_Functions = Mapping[tuple[str, str, str], Iterable[onnx.NodeProto]]


def _count(
    nodes: Iterable[onnx.NodeProto],
    functions: _Functions,
    where: str,
    within: tuple[tuple[str, str, str], ...],
    known: dict[tuple[str, str, str], int],
) -> int:
    """Operators, with those of the functions that are called; foreign ones and control flow are refused."""
    count = 0
    for node in nodes:
        key = _key(node.domain, node.op_type, node)
        if key in functions:
            if key in within or len(within) == MOST_CALLS:
                raise InputError(
                    f"'{where}' has functions that call themselves, or each other too deep ({key[1]})"
                )
            if key not in known:
                known[key] = _count(functions[key], functions, where, (*within, key), known)
            count += known[key]
            continue
        if node.domain not in _OWN_DOMAINS:
            raise InputError(
                f"'{where}' uses the custom operator {f'{node.domain}::{node.op_type}'[:100]}; only "
                "operators of ONNX Runtime are run: export the network without it"
            )
        if node.op_type in _CONTROL_FLOW or any(each.g.node or each.graphs for each in node.attribute):
            raise InputError(
                f"'{where}' has control flow ({node.op_type}); a network must take the same way for every "
                "crop: export it from a traced model"
            )
        count += 1
    return count


def _key(domain: str, name: str, part: onnx.NodeProto | onnx.FunctionProto) -> tuple[str, str, str]:
    return domain, name, getattr(part, "overload", "")  # which onnx has since 1.16


def _drop_stored_inputs(model: onnx.ModelProto) -> None:
    """Before version 4 of the format, stored tensors were listed among the inputs as well."""
    stored = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in stored]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)


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
    else:
        head = _last_linear(model, makers, constants, where)
    weight, bias = _head_values(head, model, constants)
    name = head.name or head.output[0]
    return CutGraph(_ending_in(model, head.input[0]), weight, bias, name)


def _last_linear(
    model: onnx.ModelProto, makers: dict[str, onnx.NodeProto], constants: dict[str, np.ndarray], where: str
) -> onnx.NodeProto:
    tensor = model.graph.output[0].name
    while (node := makers.get(tensor)) is not None:
        if node.op_type in ("Gemm", "MatMul") and len(node.input) > 1 and node.input[1] in constants:
            return node
        if node.op_type not in _AFTER_HEAD:
            break
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
    name = head.name or head.output[0]
    if stored.ndim != 2 or not stored.size:
        raise InputError(f"the layer '{name}' has weights of shape {stored.shape}; a head has two axes")
    if head.op_type == "Gemm":
        options = {each.name: onnx.helper.get_attribute_value(each) for each in head.attribute}
        weight = (stored if options.get("transB") else stored.T) * options.get("alpha", 1.0)
        given = constants.get(head.input[2]) if len(head.input) > 2 else None
        bias = np.zeros(len(weight)) if given is None else given.astype(np.float64) * options.get("beta", 1.0)
    else:
        weight, bias = stored.T, np.zeros(stored.shape[1])
        after = next((node for node in model.graph.node if head.output[0] in node.input), None)
        if after is not None and after.op_type == "Add":
            bias = next(
                (constants[each].astype(np.float64) for each in after.input if each in constants), bias
            )
    if bias.size not in (1, len(weight)):
        raise InputError(f"the layer '{name}' has a bias of shape {bias.shape} for {len(weight)} classes")
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise InputError(f"the layer '{name}' has weights that are NaN or infinite")
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
    features = free_name(model.graph, "features")
    flat = f"{features}_flat"
    cut.graph.node.append(onnx.helper.make_node("Flatten", [tensor], [flat], axis=1))
    cut.graph.node.append(onnx.helper.make_node("Cast", [flat], [features], to=onnx.TensorProto.FLOAT))
    cut.graph.initializer.extend(each for each in model.graph.initializer if each.name in names)
    cut.graph.output.append(onnx.helper.make_tensor_value_info(features, onnx.TensorProto.FLOAT, None))
    return cut


def _constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Stored tensors by name, also those of Constant nodes and of weights that are transposed or renamed."""
    found = {each.name: _array(each) for each in model.graph.initializer}
    for node in model.graph.node:  # in topological order
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = _array(node.attribute[0].t)
        elif node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
        elif node.op_type == "Transpose" and node.input[0] in found:
            axes = next((list(each.ints) for each in node.attribute if each.name == "perm"), None)
            found[node.output[0]] = found[node.input[0]].transpose(axes)
    return found


def _array(tensor: onnx.TensorProto) -> np.ndarray:
    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # ONNX Runtime does not look at those that nothing needs
        raise InputError(f"the stored tensor '{tensor.name}' cannot be read: {reason(error)}") from None


def _refuse_external(graph: onnx.GraphProto, where: str) -> None:
    for tensor in _tensors(graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise InputError(
                f"'{where}' keeps its weights in other files ('{tensor.name}'); save it as one file, in "
                "Python `onnx.save(onnx.load(FILE), OTHER)`"
            )


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner) if inner.node else ()
