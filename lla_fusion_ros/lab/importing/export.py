"""The way back: a bundle's networks as ONNX graphs, for a vehicle without torch or for another program."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.bundle.bundle import ONNX, graph_tensors
from lla_fusion_ros.lab.importing.onnx_files import free_name
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.networks.heads import Head
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax

if TYPE_CHECKING:
    import torch

OPSET = 17
TRUE = 0.02  # how far a class probability of all networks may be from that in 32 bits, at the 99th percentile


def exported(bundle: Bundle, crops: np.ndarray | None = None) -> Bundle:
    """The bundle with its networks as graphs in place of torch's; in 8 bits as well where crops are given.

    crops [n, S, S, 3] uint8 are ordinary ones, to measure what the layers put out.
    """
    single = bundle.graphs("float32") or [_graph_of(bundle)]
    heads = bundle.heads() if bundle.meta.trunks else _own_heads(bundle)
    kept = {
        name: array
        for name, array in bundle.tensors.items()
        if not name.startswith(("network.", "graph.", "basis."))
    }
    graphs = {"float32": single}
    if crops is not None:
        graphs["int8"] = [in_eight_bits(graph, crops) for graph in single]
    trunks = tuple(head.trunk for head in heads)
    meta = replace(bundle.meta, architecture={"name": ONNX}, normalisation={}, trunks=trunks, plugins=())
    fresh = Bundle(meta, {**kept, **graph_tensors(graphs, heads)}, source=bundle.source)
    _compare(bundle, fresh, "float32", crops, 1e-3)
    if crops is not None:
        _compare(bundle, fresh, "int8", crops, TRUE)
    return fresh


def _compare(old: Bundle, new: Bundle, precision: str, crops: np.ndarray | None, most: float) -> None:
    """Refuse graphs that do not say what the networks say."""
    if crops is None:
        side = old.input_size
        crops = np.random.default_rng(0).integers(0, 256, (8, side, side, 3)).astype(np.uint8)
    pmfs = [
        softmax(Classifier(each, "cpu", kind)(crops).logits).mean(axis=1)
        for each, kind in ((old, "float32"), (new, precision))
    ]
    difference = float(np.quantile(np.abs(pmfs[0] - pmfs[1]).max(axis=1), 0.99))
    if difference > most:
        raise InputError(
            f"the networks of '{old.source}' do not survive the export in {precision}: class probabilities "
            f"differ by {difference:.3f}, at most {most} is accepted"
        )


def _own_heads(bundle: Bundle) -> list[Head]:
    return [
        Head(number, member.head.weight.detach().numpy(), member.head.bias.detach().numpy())
        for number, member in enumerate(bundle.members())
    ]


def _graph_of(bundle: Bundle) -> bytes:
    """Crops to the features of every member, normalisation included; torch writes it."""
    import torch
    from torch import nn

    from lla_fusion_ros.networks.network import folded, parted

    normalise = bundle.normalisation()

    class Trunks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, members = parted([folded(member).trunk for member in bundle.members()])
            self.members = nn.ModuleList(members)

        def forward(self, crops: torch.Tensor) -> tuple[torch.Tensor, ...]:
            images = crops.to(torch.float32)
            if normalise.gray:
                images = images.mean(dim=3, keepdim=True)
            if normalise.kind == "fixed":
                images = (images - 255.0 * normalise.mean) / (255.0 * normalise.std)
            else:  # the same formula as `Normalisation`, which works in place and cannot be traced
                images = images - images.mean(dim=(1, 2, 3), keepdim=True)
                values = images.shape[1] * images.shape[2] * images.shape[3]
                square = (images * images).sum(dim=(1, 2, 3), keepdim=True)
                images = images / ((square / (values - 1)).sqrt() + 255.0 * normalise.floor)
            images = self.stem(images.permute(0, 3, 1, 2))
            return tuple(member(images).flatten(1) for member in self.members)

    side = bundle.input_size
    names = [f"features_{number}" for number in range(bundle.networks)]
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the exporter's age
        torch.onnx.export(
            Trunks().eval(),
            (torch.zeros(2, side, side, 3, dtype=torch.uint8),),
            file,  # type: ignore[arg-type]
            dynamo=False,
            opset_version=OPSET,
            input_names=["crops"],
            output_names=names,
            dynamic_axes={name: {0: "n"} for name in ["crops", *names]},
        )
    return file.getvalue()


def in_eight_bits(graph: bytes, crops: np.ndarray, batch: int = 32) -> bytes:
    """The same graph with convolutions, ReLU and pooling in 8 bits (QDQ), scales measured on crops."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    name = onnx.load_model_from_string(graph).graph.input[0].name

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._parts: Iterator[np.ndarray] = iter(
                crops[at : at + batch] for at in range(0, len(crops) // batch * batch, batch)
            )

        def get_next(self) -> Any:
            part = next(self._parts, None)
            return None if part is None else {name: part}

    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder, "plain.onnx"), Path(folder, "small.onnx")
        plain.write_bytes(graph)
        quantize_static(
            plain,
            small,
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "Relu", "MaxPool"],  # between two convolutions nothing is unpacked
            per_channel=True,
            reduce_range=True,  # sums of pairs fit into 16 bits on a CPU without VNNI
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return small.read_bytes()


def as_one_graph(bundle: Bundle) -> onnx.ModelProto:
    """Crops [n, S, S, 3] uint8 -> logits, and their Laplace variances T_theta phi^T A_m^-1 phi (eq. 17c).

    Both are [n, networks, classes]; the logits are calibrated by temperature scaling.
    """
    graphs = bundle.graphs("float32")
    if len(graphs) != 1:
        raise InputError(
            f"'{bundle.source}' has {len(graphs)} graphs; networks of one can be exported to ONNX"
        )
    model = onnx.load_model_from_string(graphs[0])
    trunks = [each.name for each in model.graph.output]
    build = _Builder(model.graph)
    posterior = bundle.posterior()
    classes, size = posterior.classes, posterior.features
    whitening = np.sqrt(posterior.temperature) * posterior.inverse_factors()  # [networks, classes, D, D]
    logits, variances = [], []
    for number, head in enumerate(bundle.heads()):
        phi = trunks[head.trunk]
        logits.append(build("Add", build("MatMul", phi, head.weight.T), head.bias))
        seen = _seen(build, phi, head)
        columns = whitening[number].transpose(2, 0, 1).reshape(size, classes * size)
        prints = build("Reshape", build("MatMul", seen, columns), np.array([-1, classes, size]))
        variances.append(build("MatMul", build("Mul", prints, prints), np.ones(size)))
    names = [free_name(model.graph, name) for name in ("logits", "variance")]
    for name, parts in zip(names, (logits, variances), strict=True):
        shaped = [build("Reshape", part, np.array([-1, 1, classes])) for part in parts]
        build.graph.node.append(helper.make_node("Concat", shaped, [name], axis=1))
    del model.graph.output[:]
    shape = ["n", bundle.networks, classes]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names)
    for key, value in (("classes", "\n".join(bundle.class_names)), ("bundle", bundle.hash)):
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    return model


class _Builder:
    """Appends operators to a graph; arrays among the inputs become stored constants."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph, self._prefix, self._count = graph, free_name(graph, "laplace"), 0

    def __call__(self, operator: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        names = [each if isinstance(each, str) else self._stored(each) for each in inputs]
        output = self._name()
        self.graph.node.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def _stored(self, array: np.ndarray) -> str:
        name = self._name()
        kind = np.int64 if array.dtype.kind == "i" else np.float32
        self.graph.initializer.append(numpy_helper.from_array(array.astype(kind), name))
        return name

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}_{self._count}"


def _seen(build: _Builder, phi: str, head: Head) -> str:
    """`seen_features` as operators."""
    parts: Sequence[str] = [phi]
    if head.basis is not None:
        along = build("MatMul", phi, head.basis)
        rest = build("Sub", phi, build("MatMul", along, head.basis.T))
        square = build("MatMul", build("Mul", rest, rest), np.ones((len(head.basis), 1)))
        parts = [along, build("Sqrt", square)]
    one = build("Add", build("MatMul", phi, np.zeros((head.weight.shape[1], 1))), np.ones(1))
    return build("Concat", *parts, one, axis=1)


def ordinary_crops(images: Iterable[np.ndarray], most: int = 512) -> np.ndarray:
    """Evenly picked crops to measure scales on."""
    every = np.concatenate(list(images))
    return every[np.linspace(0, len(every) - 1, min(most, len(every))).astype(int)]
