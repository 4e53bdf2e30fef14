"""From a torch module and its weights to the same parts as an ONNX file: a trunk, and a head."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lla_fusion_ros.lab.importing.onnx_files import CutGraph, parse_onnx
from lla_fusion_ros.types.errors import InputError, reason

CLOSE = 1e-3  # of the largest logit: how well head and trunk must give what the module gives
_OPSET = 17


def load_module(factory: str, weights: Path | None) -> nn.Module:
    """`package.module:factory` is imported and called; its weights are tensors only, never code."""
    name, _, attribute = factory.partition(":")
    sys.path.insert(0, "")  # a module beside the user, as `python -m` would find it
    try:
        found: Any = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
        module = found()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"--module {factory}: {error}; give package.module:function, called without arguments"
        ) from None
    finally:
        sys.path.remove("")
    if not isinstance(module, nn.Module):
        raise InputError(f"--module {factory} gives a {type(module).__name__}, not a torch.nn.Module")
    if weights is not None:
        _load_weights(module, weights)
    return module.eval().requires_grad_(False)


def _load_weights(module: nn.Module, path: Path) -> None:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, zipfile, safetensors
        raise InputError(
            f"'{path}' holds no weights that can be read without running code: {reason(error)}"
        ) from None
    while isinstance(state, Mapping) and not all(isinstance(value, torch.Tensor) for value in state.values()):
        inner = [value for value in state.values() if isinstance(value, Mapping)]
        if len(inner) != 1 and "state_dict" not in state:
            raise InputError(f"'{path}' holds no state dict of a network")
        state = state.get("state_dict", inner[0])
    state = {name.removeprefix("module."): value for name, value in state.items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"'{path}' does not fit the module: {reason(error)}") from None


def cut_module(module: nn.Module, size: int, channels: int = 3, layer: str = "") -> CutGraph:
    """The module as a graph that ends in the input of its last nn.Linear, or of the one named."""
    linear = {name: each for name, each in module.named_modules() if isinstance(each, nn.Linear)}
    if not linear or (layer and layer not in linear):
        known = ", ".join(list(linear)[-5:]) or "none"
        raise InputError(
            f"the module has no nn.Linear{f' {layer!r}' if layer else ''}; its last are: {known}"
        )
    name = layer or list(linear)[-1]
    head = linear[name]
    probe = torch.rand(2, channels, size, size)
    with torch.no_grad():
        expected = module(probe)
        parent, _, own = name.rpartition(".")
        setattr(module.get_submodule(parent), own, nn.Identity())
        given = head(module(probe).flatten(1))
    if not layer:
        _check_last(name, given, expected)
    model = parse_onnx(_exported(module, probe), "the exported module")
    weight, bias = (
        np.zeros(head.out_features) if each is None else each.detach().double().numpy()
        for each in (head.weight, head.bias)
    )
    return CutGraph(model, weight, bias, name)


def _check_last(name: str, given: torch.Tensor, expected: torch.Tensor) -> None:
    """The layer must be the last one, up to a softmax."""
    for after in (given, given.softmax(1), given.log_softmax(1)):
        if after.shape == expected.shape and (after - expected).abs().max() <= CLOSE * expected.abs().max():
            return
    raise InputError(f"the module does not end in its last nn.Linear '{name}'; name its head with --layer")


def _exported(module: nn.Module, probe: torch.Tensor) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the exporter's age and about constants in the trace
        try:
            torch.onnx.export(
                _Flat(module),
                (probe,),
                file,  # type: ignore[arg-type]
                dynamo=False,
                opset_version=_OPSET,
                input_names=["image"],
                output_names=["features"],
                dynamic_axes={"image": {0: "n"}, "features": {0: "n"}},
            )
        except Exception as error:
            raise InputError(
                f"torch cannot export the module to ONNX: {reason(error)}; import its ONNX file"
            ) from None
    return file.getvalue()


class _Flat(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.module(images).flatten(1)
