"""What a network wants done to a crop, put in front of its graph, which then takes crops as they are cut."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from lla_fusion_ros.lab.importing.onnx_files import free_name
from lla_fusion_ros.types.errors import InputError

LAYOUTS = ("nchw", "nhwc", "flat")
COLOURS = ("rgb", "bgr")
_TYPES = {TensorProto.UINT8: "uint8", TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16"}


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """(pixel * scale / 255 - mean) / std, colour by colour; nothing of it for a network that takes uint8.

    Attributes:
        mean, std: one number for all colours, or three, in the order of `colours`.
        scale: what the brightest pixel is before mean and std: 1, or 255 for networks of that range.
        colours: the order that the network takes.
        layout: nchw, nhwc or flat; empty: told by the shape of the input.
        size: side of the crops, where the graph leaves it open.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float = 1.0
    colours: str = "rgb"
    layout: str = ""
    size: int = 0

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, 3) or not all(math.isfinite(value) for value in values):
                raise InputError(f"--{name} takes one number or three, not {list(values)}")
        if min(self.std) <= 0 or not self.scale > 0:
            raise InputError(f"--std {list(self.std)} and --scale {self.scale} must be positive")


@dataclass(frozen=True, slots=True)
class InputShape:
    """What a graph takes.

    Attributes:
        batch: 0 where any number of images fits.
        kind: type of its elements, of TensorProto.
    """

    name: str
    batch: int
    layout: str
    channels: int
    size: int
    kind: int


def input_shape(model: onnx.ModelProto, wanted: Preprocessing, where: str) -> InputShape:
    """The one input of a graph, as far as its shape tells and the user says."""
    stored = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in stored]
    if len(inputs) != 1:
        raise InputError(f"'{where}' has {len(inputs)} inputs; a classifier of crops has one, the image")
    kind = inputs[0].type.tensor_type.elem_type
    if kind not in _TYPES:
        raise InputError(f"'{where}' takes an input of a type other than {', '.join(_TYPES.values())}")
    dims = [dim.dim_value for dim in inputs[0].type.tensor_type.shape.dim]  # 0: open
    layout = wanted.layout or _layout(dims, where)
    if layout == "flat":
        values = max(dims[1], 0) if len(dims) == 2 else 0
        channels = 3 if values % 3 == 0 and math.isqrt(values // 3) ** 2 * 3 == values else 1
        height = width = math.isqrt(values // channels)
    else:
        channels, height, width = (dims[at] for at in ((1, 2, 3) if layout == "nchw" else (3, 1, 2)))
    size = height or width or wanted.size
    if (height and width and height != width) or (wanted.size and size != wanted.size) or size < 4:
        raise InputError(
            f"'{where}' takes images of {width or 'any'} x {height or 'any'} pixels; crops are square"
            + (f", and --size asks for {wanted.size}" if wanted.size else ": give their side with --size")
        )
    return InputShape(inputs[0].name, dims[0], layout, channels or 3, size, kind)


def _layout(dims: list[int], where: str) -> str:
    if len(dims) == 2:
        return "flat"
    if len(dims) == 4 and dims[1] in (1, 3):
        return "nchw"
    if len(dims) == 4 and dims[3] in (1, 3):
        return "nhwc"
    raise InputError(f"'{where}' takes an input of shape {dims}; say with --axes where its channels are")


def taking_crops(model: onnx.ModelProto, wanted: Preprocessing, where: str) -> tuple[bytes, int]:
    """The graph with the preprocessing in front, input [n, S, S, 3] uint8 RGB, and the side S."""
    shape = input_shape(model, wanted, where)
    graph = model.graph
    crops = free_name(graph, "crops")
    nodes: list[onnx.NodeProto] = []

    def then(operator: str, *constants: np.ndarray, **attributes: object) -> None:
        """One operator more, on what the last one gave."""
        names = []
        for array in constants:
            names.append(f"{crops}_{len(nodes)}_constant")
            graph.initializer.append(numpy_helper.from_array(array, names[-1]))
        before = nodes[-1].output[0] if nodes else crops
        nodes.append(helper.make_node(operator, [before, *names], [f"{crops}_{len(nodes)}"], **attributes))

    if shape.kind == TensorProto.UINT8:
        if (wanted.mean, wanted.std, wanted.scale) != ((0.0,), (1.0,), 1.0):
            raise InputError(
                f"'{where}' takes uint8 images and scales them itself: leave --mean and --std out"
            )
        if shape.channels == 1:
            raise InputError(
                f"'{where}' takes grey uint8 images, which are not supported; export it for floats"
            )
    else:
        then("Cast", to=TensorProto.FLOAT)
    if shape.channels == 1:
        then("MatMul", np.full((3, 1), 1 / 3, np.float32))
    elif wanted.colours == "bgr":
        then("Gather", np.array([2, 1, 0]), axis=3)
    if shape.kind != TensorProto.UINT8:
        mean, std = (np.array(values, np.float64) for values in (wanted.mean, wanted.std))
        then("Mul", (wanted.scale / 255 / std).astype(np.float32))
        then("Sub", (mean / std).astype(np.float32))
    if shape.layout != "nhwc":
        then("Transpose", perm=[0, 3, 1, 2])
    if shape.layout == "flat":
        then("Flatten", axis=1)
    if shape.kind == TensorProto.FLOAT16:
        then("Cast", to=TensorProto.FLOAT16)
    if not nodes:
        then("Identity")
    nodes[-1].output[0] = shape.name
    rest, outputs = list(graph.node), list(graph.output)
    del graph.node[:], graph.output[:]
    graph.node.extend([*nodes, *rest])
    kept = [each for each in graph.input if each.name != shape.name]
    del graph.input[:]
    dims = [shape.batch or "n", shape.size, shape.size, 3]
    graph.input.extend([helper.make_tensor_value_info(crops, TensorProto.UINT8, dims), *kept])
    graph.output.extend(outputs)
    return model.SerializeToString(), shape.size
