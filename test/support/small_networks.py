"""Small classifiers of several kinds, as ONNX files that torch or onnx's own helper writes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn


class Residual(nn.Module):
    """A block as in ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(images + self.second(torch.relu(self.norm(self.first(images)))))


def _pooled(*layers: nn.Module) -> list[nn.Module]:
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def resnet(classes: int = 3) -> nn.Module:
    body = _pooled(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), Residual(8), Residual(8))
    return nn.Sequential(*body, nn.Linear(8, classes))


def mobilenet(classes: int = 3) -> nn.Module:
    """Depthwise convolutions, ReLU6, dropout before the head."""
    body = _pooled(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6(), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 12, 1)
    )
    return nn.Sequential(*body, nn.Dropout(0.2), nn.Linear(12, classes))


def mlp(classes: int = 3) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10), nn.Tanh(), nn.Linear(10, classes))


def softmax_inside(classes: int = 3) -> nn.Module:
    return nn.Sequential(*resnet(classes), nn.Softmax(dim=1))


def headless(classes: int = 3) -> nn.Module:
    """Classes come from a convolution."""
    return nn.Sequential(*_pooled(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, classes, 1)))


def made(make: Any, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make().eval()


def write(module: nn.Module, path: Path, size: int = 16, batch: int = 0) -> Path:
    """`batch` 0 leaves the number of images open."""
    open_axes = None if batch else {"image": {0: "n"}, "out": {0: "n"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (torch.rand(batch or 2, 3, size, size),),
            str(path),
            dynamo=False,
            input_names=["image"],
            output_names=["out"],
            dynamic_axes=open_axes,
        )
    return path


def handmade(
    nodes: list[Any], constants: dict[str, np.ndarray], shape: list[Any], kind: int
) -> onnx.ModelProto:
    """A graph from `image` to `out`."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def linear(shape: list[Any], kind: int = TensorProto.FLOAT, seed: int = 0) -> onnx.ModelProto:
    """Flat pixels, MatMul, Relu, MatMul + Add: no Gemm."""
    rng = np.random.default_rng(seed)
    values = 3 * 8 * 8
    constants = {
        "w1": rng.normal(size=(values, 6)).astype(np.float32) / 50,
        "w2": rng.normal(size=(6, 4)).astype(np.float32),
        "b2": rng.normal(size=4).astype(np.float32),
    }
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["float"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "w1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["phi"], name="activation"),
        helper.make_node("MatMul", ["phi", "w2"], ["product"], name="head"),
        helper.make_node("Add", ["product", "b2"], ["out"]),
    ]
    return handmade(nodes, constants, shape, kind)


def mobilenet7() -> nn.Module:
    return mobilenet(7)
