"""Trunks as ONNX graphs in ONNX Runtime: no torch, and no code of whoever made the network.

Such a graph takes crops [n, S, S, 3] uint8 RGB as they are cut, and gives the features of one trunk or of
several, [n, d] each; what the network itself wants (order of axes and colours, scale, type) is in the graph.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lla_fusion_ros.networks.heads import Head, views_of
from lla_fusion_ros.types.errors import BundleError, InputError, missing_extra, reason

if TYPE_CHECKING:
    import onnxruntime

# The short names of settings, in the order that suits a vehicle.
PROVIDERS = {
    "tensorrt": "TensorrtExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
AT_ONCE = {"cpu": 32}  # crops of one pass; what lies between the layers stays near the cache
_OTHER_AT_ONCE = 256


class Trunks:
    """Graphs in ONNX Runtime: crops in, features of every trunk out.

    Args:
        graphs: serialised ONNX models, whose outputs are the trunks in order.
        providers: short names, the first that is there is used; empty: CUDA where `device` allows, else CPU.
        threads: of one pass; 0: all cores.
    """

    def __init__(
        self,
        graphs: Sequence[bytes],
        size: int,
        device: str = "auto",
        providers: Sequence[str] = (),
        threads: int = 0,
    ) -> None:
        self.notes: list[str] = []  # what the user should hear
        chosen = self._choose(providers or _providers_for(device), named=bool(providers) or device != "auto")
        self._sessions = [_session(graph, chosen, threads) for graph in graphs]
        used = {session.get_providers()[0] for session in self._sessions}
        self.device = next(name for name, full in PROVIDERS.items() if full in used)
        if PROVIDERS[chosen[0]] not in used:
            self.notes.append(f"ONNX Runtime did not start {chosen[0]}: the networks run on {self.device}")
        self._batches = [_check_inputs(session, size) for session in self._sessions]
        self.at_once = AT_ONCE.get(self.device, _OTHER_AT_ONCE)

    def __call__(self, crops: np.ndarray) -> list[np.ndarray]:
        """[n, S, S, 3] uint8 -> [n, d] of every trunk"""
        starts = range(0, len(crops), self.at_once)
        parts = [self._run(crops[start : start + self.at_once]) for start in starts]
        return [np.concatenate(each) if len(parts) > 1 else each[0] for each in zip(*parts, strict=True)]

    def _run(self, crops: np.ndarray) -> list[np.ndarray]:
        crops = np.ascontiguousarray(crops)
        outputs: list[np.ndarray] = []
        for session, batch in zip(self._sessions, self._batches, strict=True):
            outputs += _run(session, crops, batch)
        return outputs

    def _choose(self, names: Sequence[str], named: bool) -> list[str]:
        """Those that this ONNX Runtime has, in order; says loudly which of the wanted it lacks."""
        unknown = [name for name in names if name not in PROVIDERS]
        if unknown:
            raise InputError(f"provider '{unknown[0]}' is unknown; use {', '.join(PROVIDERS)}")
        there = _runtime().get_available_providers()
        present = [name for name in names if PROVIDERS[name] in there]
        missing = [name for name in names if name not in present]
        if missing and named:
            self.notes.append(
                f"ONNX Runtime has no provider {', '.join(missing)} here: it was built with "
                f"{', '.join(name for name, full in PROVIDERS.items() if full in there)}"
            )
        if not present:
            raise InputError(f"{self.notes[-1]}; install that ONNX Runtime, or add cpu to the providers")
        return present


class OnnxEngine:
    """Trunks with heads on them: crops in, logits and features out."""

    name = "onnxruntime"

    def __init__(self, trunks: Trunks, heads: Sequence[Head], size: int, precision: str = "float32") -> None:
        self._trunks, self._heads, self._size, self.precision = trunks, heads, size, precision
        self.device, self.notes, self.at_once = trunks.device, trunks.notes, trunks.at_once
        self.networks, self.classes = len(heads), len(heads[0].weight)
        self.features = heads[0].features
        _check_widths(trunks(np.zeros((2, size, size, 3), np.uint8)), heads)

    def __call__(self, crops: np.ndarray) -> np.ndarray:
        """[n, S, S, 3] uint8 -> [n, networks, classes + features] float32"""
        return views_of(self._heads, self._trunks(crops))

    def warm_up(self, crops: int) -> None:
        """ONNX Runtime plans its memory, and TensorRT and CUDA choose kernels, for every new shape."""
        for count in {1, min(max(crops, 1), self.at_once)}:
            self(np.zeros((count, self._size, self._size, 3), np.uint8))


def _providers_for(device: str) -> list[str]:
    kind = device.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda"):
        raise InputError(f"device '{device}' is unknown; use auto, cpu, cuda or cuda:0")
    return {"auto": ["cuda", "cpu"], "cpu": ["cpu"], "cuda": ["cuda"]}[kind]


def _runtime() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise InputError(missing_extra("onnxruntime", "onnx")) from None
    return onnxruntime


def _session(graph: bytes, providers: Sequence[str], threads: int) -> onnxruntime.InferenceSession:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what matters comes as an exception
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the core
    # weights stand in the graph: one that names files beside it is refused
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    full = [PROVIDERS[name] for name in dict.fromkeys([*providers, "cpu"])]
    try:
        return runtime.InferenceSession(graph, options, providers=full)
    except Exception as error:  # its exceptions share no base class
        raise BundleError(f"ONNX Runtime refuses the graph of the networks: {reason(error)}") from None


def _check_inputs(session: onnxruntime.InferenceSession, size: int) -> int:
    """The fixed batch of a graph, 0 where any number of crops fits."""
    inputs = session.get_inputs()
    shape = inputs[0].shape if len(inputs) == 1 else None
    if shape is None or inputs[0].type != "tensor(uint8)" or list(shape[1:]) != [size, size, 3]:
        found = ", ".join(f"{each.type} {each.shape}" for each in inputs)
        raise BundleError(f"the graph of the networks takes {found}, not uint8 crops [n, {size}, {size}, 3]")
    return shape[0] if isinstance(shape[0], int) else 0


def _check_widths(outputs: Sequence[np.ndarray], heads: Sequence[Head]) -> None:
    """Of two crops."""
    for number, head in enumerate(heads):
        found = outputs[head.trunk].shape if head.trunk < len(outputs) else None
        if found != (2, head.weight.shape[1]):
            raise BundleError(
                f"network {number} needs {head.weight.shape[1]} features of trunk {head.trunk}, "
                f"the graph gives {'none' if found is None else found} for two crops"
            )


def _run(session: onnxruntime.InferenceSession, crops: np.ndarray, batch: int) -> list[np.ndarray]:
    """All outputs; a graph of fixed batch gets its crops in such parts, the last one filled up."""
    name = session.get_inputs()[0].name
    try:
        if not batch or len(crops) == batch:
            return session.run(None, {name: crops})
        filled = np.zeros((-(-len(crops) // batch) * batch, *crops.shape[1:]), np.uint8)
        filled[: len(crops)] = crops
        parts = [session.run(None, {name: filled[at : at + batch]}) for at in range(0, len(filled), batch)]
        return [np.concatenate(outputs)[: len(crops)] for outputs in zip(*parts, strict=True)]
    except Exception as error:  # its exceptions share no base class
        raise BundleError(f"ONNX Runtime cannot run the networks: {reason(error)}") from None
