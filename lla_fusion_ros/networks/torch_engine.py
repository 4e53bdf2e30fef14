"""The networks of a bundle in torch, on a CPU or on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from lla_fusion_ros.networks.eight_bits import NotInEightBitsError
from lla_fusion_ros.networks.ensemble import Ensemble
from lla_fusion_ros.types.errors import InputError

# Crops that a CPU runs at once: what lies between the layers then stays near the cache, and a full queue of
# all cameras does not claim hundreds of megabytes, of which malloc would keep a part.
AT_ONCE = 32
ON_CUDA_AT_ONCE = 1024  # bounds memory, costs nothing
# oneDNN writes a program for every number of crops that it has not met, which takes longer than running it.
EIGHT_BIT_BATCHES = (1, 2, *range(4, AT_ONCE + 1, 4))
KINDS = ("fixed", "per_crop")  # of normalisation


@dataclass(frozen=True, slots=True)
class Normalisation:
    """From uint8 crops to what the networks take, on the device the crops are on.

    Attributes:
        kind: "per_crop" subtracts each crop's own mean and divides by its own deviation, so that
            exposure and contrast of a camera drop out; "fixed" uses `mean` and `std` for all.
        mean, std: on the scale 0..1; used by "fixed".
        floor: added to a crop's deviation, so that an empty crop does not become amplified noise.
        gray: networks get one channel, the mean of the three.
    """

    kind: str = "per_crop"
    mean: float = 0.0
    std: float = 1.0
    floor: float = 0.02
    gray: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"normalisation kind {self.kind!r} is unknown; known are {', '.join(KINDS)}")
        if not (self.std > 0 and self.floor >= 0):
            raise InputError(f"normalisation needs std > 0 and floor >= 0, not {self.std} and {self.floor}")

    @property
    def channels(self) -> int:
        return 1 if self.gray else 3

    def __call__(self, crops: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """[crops, S, S, 3] uint8 -> [crops, channels, S, S]; channels last in memory, which is faster."""
        images = crops.to(torch.float32, memory_format=torch.contiguous_format)
        if self.gray:
            images = images.mean(dim=3, keepdim=True)
        rows = images.flatten(1)  # the same numbers
        if self.kind == "fixed":
            rows.sub_(255.0 * self.mean).div_(255.0 * self.std)
        else:  # torch.std_mean takes five times as long
            rows.sub_(rows.mean(dim=1, keepdim=True))
            deviation = torch.linalg.vector_norm(rows, dim=1, keepdim=True).div_((rows.shape[1] - 1) ** 0.5)
            rows.div_(deviation.add_(255.0 * self.floor))
        return images.permute(0, 3, 1, 2).to(dtype)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class TorchEngine:
    """All networks in one call: one copy to the device, one copy back, no other wait.

    Args:
        build: gives the ensemble, with its convolutions in 8 bits where it is told so.
    """

    name = "torch"

    def __init__(
        self,
        build: Callable[[bool], Ensemble],
        normalise: Normalisation,
        size: int,
        device: str = "auto",
        precision: str = "float32",
        threads: int | None = None,
    ) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self.notes: list[str] = []  # what the user should hear
        self._device = choose_device(device)
        self.precision = choose_precision(precision, self._device)
        if device == "auto" and self._device.type == "cpu":
            self.notes.append("no CUDA device found: the networks run on the CPU")
        try:
            ensemble = build(self.precision == "int8")
        except NotInEightBitsError:
            if precision != "auto":
                raise
            self.precision, ensemble = "float32", build(False)
        self.device = str(self._device)
        self.at_once = AT_ONCE if self._device.type == "cpu" else ON_CUDA_AT_ONCE  # crops of one pass
        self._dtype = torch.float16 if self.precision == "float16" else torch.float32
        self._ensemble = ensemble.to(self._device, self._dtype)
        self._normalise, self._size = normalise, size
        self._stage = torch.empty(0, dtype=torch.uint8)
        self.networks, self.classes = ensemble.networks, ensemble.classes
        self.features = ensemble.features

    def __call__(self, crops: np.ndarray) -> np.ndarray:
        """[n, S, S, 3] uint8, n up to `at_once` -> [n, networks, classes + features] float32

        In 8 bits, filled up with empty crops to one of EIGHT_BIT_BATCHES.
        """
        if self.precision != "int8":
            return self._run(crops)
        missing = next(size for size in EIGHT_BIT_BATCHES if size >= len(crops)) - len(crops)
        if not missing:
            return self._run(crops)
        filled = np.concatenate([crops, np.zeros((missing, *crops.shape[1:]), np.uint8)])
        return self._run(filled)[: len(crops)]

    def _run(self, crops: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            host = torch.from_numpy(np.ascontiguousarray(crops))
            if self._device.type != "cpu":
                host = self._staged(host)
            images = self._normalise(host.to(self._device, non_blocking=True), self._dtype)
            # one tensor, so that one copy brings both back
            return torch.cat(self._ensemble(images), dim=2).to("cpu", torch.float32).numpy()

    def _staged(self, crops: torch.Tensor) -> torch.Tensor:
        """The crops in memory that is kept for them, pinned for CUDA: only from there is a copy truly
        non-blocking. The call before has brought its result back, so it is free again."""
        if len(self._stage) < len(crops):
            pinned = self._device.type == "cuda"
            self._stage = torch.empty((self.at_once, *crops.shape[1:]), dtype=torch.uint8, pin_memory=pinned)
        return self._stage[: len(crops)].copy_(crops)

    def warm_up(self, crops: int) -> None:
        """Pay for allocation and the choice of kernels."""
        for count in EIGHT_BIT_BATCHES if self.precision == "int8" else (max(crops, 1),):
            self(np.zeros((count, self._size, self._size, 3), np.uint8))


def choose_precision(name: str, device: torch.device) -> str:
    """The precision of that name, refused where the device does not have it; the one "auto" tries."""
    if name == "auto":
        fast = device.type == "cpu" and torch.backends.cpu.get_cpu_capability().startswith("AVX")
        return "int8" if fast else "float32"
    needed = {"float16": "cuda", "int8": "cpu"}.get(name, device.type)
    if device.type != needed:
        raise InputError(f"precision {name} needs a device of type {needed}, not '{device}'; use float32")
    return name


def choose_device(name: str) -> torch.device:
    """The torch device of that name; "auto" takes CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device '{name}' is unknown; use auto, cpu, cuda or cuda:0") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device '{name}' needs CUDA, but torch finds no CUDA here; use auto or cpu")
    return device
