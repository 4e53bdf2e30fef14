"""Crops in, views out: the networks of a bundle in one of the engines."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lla_fusion_ros.images.quality import crop_quality
from lla_fusion_ros.networks.heads import Head
from lla_fusion_ros.types.errors import InputError, missing_extra
from lla_fusion_ros.types.settings import ENGINES, PRECISIONS
from lla_fusion_ros.types.views import Views

if TYPE_CHECKING:  # a vehicle may lack it
    from lla_fusion_ros.networks.ensemble import Ensemble
    from lla_fusion_ros.networks.torch_engine import Normalisation


class StoredNetworks(Protocol):
    """What a classifier needs of a bundle: networks for torch, graphs for ONNX Runtime, or both."""

    @property
    def input_size(self) -> int: ...

    @property
    def for_torch(self) -> bool: ...

    def ensemble(self, networks: Sequence[int] | None = None, eight_bits: bool = False) -> Ensemble: ...

    def normalisation(self) -> Normalisation: ...

    def graphs(self, precision: str) -> list[bytes]: ...

    def heads(self) -> list[Head]: ...


class Engine(Protocol):
    """Where networks run.

    Attributes:
        at_once: crops of one call.
        notes: what the user should hear.
    """

    name: str
    device: str
    precision: str
    at_once: int
    networks: int
    classes: int
    features: int
    notes: list[str]

    def __call__(self, crops: np.ndarray) -> np.ndarray: ...

    def warm_up(self, crops: int) -> None: ...


class Classifier:
    """All networks of a bundle in one call.

    Args:
        device: "auto" takes CUDA where there is one; "cpu", "cuda" or "cuda:0" otherwise.
        precision: "float32"; "float16", in torch on CUDA; "int8", convolutions in 8 bits, on a CPU, where it
            takes about half of the time or less; "auto" is int8 on a CPU where the bundle can, else float32.
        networks: use only these members of the ensemble.
        engine: "torch"; "onnxruntime", for bundles that hold ONNX graphs; "auto": what it is for.
        providers: of ONNX Runtime, the first that is there is used: tensorrt, cuda, openvino, cpu.
        threads: of one call, in torch of the whole process; without a number all cores, in torch as it was.
    """

    def __init__(
        self,
        bundle: StoredNetworks,
        device: str = "auto",
        precision: str = "float32",
        networks: tuple[int, ...] | None = None,
        engine: str = "auto",
        providers: Sequence[str] = (),
        threads: int | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise InputError(f"precision '{precision}' is unknown; use {', '.join(PRECISIONS)}")
        if engine not in ENGINES:
            raise InputError(f"engine '{engine}' is unknown; use {', '.join(ENGINES)}")
        self._size = bundle.input_size
        self._engine: Engine
        if _uses_torch(bundle, engine, precision, providers):
            if find_spec("torch") is None:
                raise InputError(f"this bundle's engine {missing_extra('torch', 'torch')}")
            from lla_fusion_ros.networks.torch_engine import TorchEngine

            self._engine = TorchEngine(
                lambda eight_bits: bundle.ensemble(networks, eight_bits),
                bundle.normalisation(),
                self._size,
                device,
                precision,
                threads,
            )
        else:
            from lla_fusion_ros.networks.onnx_engine import OnnxEngine, Trunks

            chosen = _stored_precision(bundle, precision)
            heads = bundle.heads()
            heads = heads if networks is None else [heads[index] for index in networks]
            trunks = Trunks(bundle.graphs(chosen), self._size, device, providers, threads or 0)
            self._engine = OnnxEngine(trunks, heads, self._size, chosen)
        self.engine, self.device = self._engine.name, self._engine.device
        self.precision, self.notes = self._engine.precision, self._engine.notes
        self.at_once = self._engine.at_once
        self.networks, self.classes = self._engine.networks, self._engine.classes
        self.features = self._engine.features

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def __call__(self, crops: np.ndarray) -> Views:
        """[crops, size, size, 3] uint8 RGB -> views with logits and features, float32."""
        if crops.dtype != np.uint8 or crops.shape[1:] != (self._size, self._size, 3):
            raise InputError(
                f"crops are {crops.dtype} of shape {crops.shape}, "
                f"expected uint8 [crops, {self._size}, {self._size}, 3]"
            )
        if len(crops) == 0:
            both = np.empty((0, self.networks, self.classes + self.features), np.float32)
        else:
            starts = range(0, len(crops), self.at_once)
            parts = [self._engine(crops[start : start + self.at_once]) for start in starts]
            both = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Views(both[..., : self.classes], both[..., self.classes :], crop_quality(crops))

    def warm_up(self, crops: int = 1) -> None:
        """Run on empty crops, so that the first frames do not pay for allocation and kernel choice."""
        self._engine.warm_up(crops)


def _uses_torch(bundle: StoredNetworks, engine: str, precision: str, providers: Sequence[str]) -> bool:
    if engine == "torch" and not bundle.for_torch:
        raise InputError("the networks of this bundle are ONNX graphs, not torch's; use engine onnxruntime")
    has_graphs = any(bundle.graphs(name) for name in PRECISIONS)
    if engine == "onnxruntime" and not has_graphs:
        raise InputError(
            "this bundle holds no ONNX graphs; `lla-fusion export BUNDLE --out FILE.safetensors` adds them"
        )
    if engine != "auto" or not (has_graphs and bundle.for_torch):
        return engine == "torch" or not has_graphs
    wanted = bool(bundle.graphs("int8")) and precision in ("auto", "int8")
    return not ((wanted or providers) and find_spec("onnxruntime"))


def _stored_precision(bundle: StoredNetworks, precision: str) -> str:
    """The graphs to run."""
    if precision == "auto":
        return "int8" if bundle.graphs("int8") else "float32"
    if not bundle.graphs(precision):
        held = ", ".join(name for name in PRECISIONS if bundle.graphs(name))
        raise InputError(f"this bundle holds ONNX graphs in {held}, not in {precision}")
    return precision
