"""Crops in, views out: the networks of a bundle on one device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.networks import NotInEightBitsError
from lla_fusion_ros.pmf import normal_points
from lla_fusion_ros.posterior.torch_variance import TorchVariance
from lla_fusion_ros.settings import PRECISIONS
from lla_fusion_ros.torch_pmf import monte_carlo, probit
from lla_fusion_ros.views import Views

Pmf = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # logits, variance -> pmf
# Crops that a CPU runs at once: what lies between the layers then stays near the cache, and a full queue of
# all cameras does not claim hundreds of megabytes, of which malloc would keep a part.
AT_ONCE = 32
# oneDNN writes a program for every number of crops that it has not met, which takes longer than running it.
EIGHT_BIT_BATCHES = (1, 2, *range(4, AT_ONCE + 1, 4))


class Classifier:
    """All networks of a bundle in one call: one copy to the device, one copy back, no other wait.

    Args:
        device: "auto" takes CUDA where there is one; any torch device name otherwise.
        precision: "float32"; "float16", weights and activations in 16 bits, on CUDA; "int8", convolutions in
            8 bits, on a CPU, where it takes about half of the time or less; "auto" is int8 on an x86 CPU for
            networks that can be run so, else float32.
        networks: use only these members of the ensemble.
        variance: also compute the Laplace variance of every logit, in the same call on the device.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: str = "auto",
        precision: str = "float32",
        networks: tuple[int, ...] | None = None,
        variance: bool = False,
    ) -> None:
        self.device = choose_device(device)
        self.precision = choose_precision(precision, self.device)
        try:
            ensemble = bundle.ensemble(networks, eight_bits=self.precision == "int8")
        except NotInEightBitsError:
            if precision != "auto":
                raise
            self.precision, ensemble = "float32", bundle.ensemble(networks)
        self._dtype = torch.float16 if self.precision == "float16" else torch.float32
        self._ensemble = ensemble.to(self.device, self._dtype)
        self._normalise = bundle.normalisation()
        self._size = bundle.input_size
        self._variance: TorchVariance | None = None
        if variance:
            posterior = bundle.posterior() if networks is None else bundle.posterior().select(networks)
            self._variance = TorchVariance(posterior).to(self.device)
        self._kept_points: dict[int, torch.Tensor] = {}
        self.classes, self.features = bundle.classes, self._ensemble.features
        self.networks = self._ensemble.networks

    def __call__(self, crops: np.ndarray) -> Views:
        """[crops, size, size, 3] uint8 RGB -> views with logits and features, float32."""
        return self._views(self._run(crops, None))

    def predict(self, crops: np.ndarray, samples: int = 0) -> tuple[Views, np.ndarray]:
        """Views with variance, and the class distribution of each network under its weights' uncertainty.

        `samples` Sobol points, or the closed form (probit) with 0; see `torch_pmf`. Still one copy each way.
        [crops, size, size, 3] uint8 RGB -> views, pmf [crops, networks, classes] float32
        """
        if self._variance is None:
            raise InputError("a class distribution under uncertainty needs a Classifier with variance=True")
        every = self._run(crops, partial(monte_carlo, points=self._points(samples)) if samples else probit)
        return self._views(every), every[..., -self.classes :]

    def _points(self, samples: int) -> torch.Tensor:
        """The Sobol points, brought to the device once.  [samples, classes]"""
        if samples not in self._kept_points:
            points = torch.tensor(normal_points(samples, self.classes), dtype=torch.float32)
            self._kept_points[samples] = points.to(self.device)
        return self._kept_points[samples]

    def _run(self, crops: np.ndarray, pmf: Pmf | None) -> np.ndarray:
        """Logits, features and, where wanted, variance and pmf side by side.  [crops, networks, ...]"""
        if crops.dtype != np.uint8 or crops.shape[1:] != (self._size, self._size, 3):
            raise InputError(
                f"crops are {crops.dtype} of shape {crops.shape}, "
                f"expected uint8 [crops, {self._size}, {self._size}, 3]"
            )
        if len(crops) == 0:
            tails = (self._variance is not None) + (pmf is not None)
            return np.empty((0, self.networks, self.features + self.classes * (1 + tails)), np.float32)
        if self.device.type != "cpu":
            return self._run_at_once(crops, pmf)
        parts = [
            self._run_whole(crops[start : start + AT_ONCE], pmf) for start in range(0, len(crops), AT_ONCE)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _run_whole(self, crops: np.ndarray, pmf: Pmf | None) -> np.ndarray:
        """Filled up with empty crops to one of EIGHT_BIT_BATCHES, where the networks run in 8 bits."""
        if self.precision != "int8":
            return self._run_at_once(crops, pmf)
        missing = next(size for size in EIGHT_BIT_BATCHES if size >= len(crops)) - len(crops)
        if not missing:
            return self._run_at_once(crops, pmf)
        filled = np.concatenate([crops, np.zeros((missing, *crops.shape[1:]), np.uint8)])
        return self._run_at_once(filled, pmf)[: len(crops)]

    def _run_at_once(self, crops: np.ndarray, pmf: Pmf | None) -> np.ndarray:
        with torch.inference_mode():
            host = torch.from_numpy(np.ascontiguousarray(crops))
            if self.device.type == "cuda":
                host = host.pin_memory()  # only from pinned memory is a copy truly non-blocking
            images = self._normalise(host.to(self.device, non_blocking=True), self._dtype)
            parts = list(self._ensemble(images))  # logits, features
            if self._variance is not None:
                parts.append(self._variance(parts[1]))
            if pmf is not None:
                parts.append(pmf(parts[0].float(), parts[2]))
            # one tensor, so that one copy brings everything back
            return torch.cat(parts, dim=2).to("cpu", torch.float32).numpy()

    def _views(self, every: np.ndarray) -> Views:
        ends = self.classes, self.classes + self.features, self.features + 2 * self.classes
        logits, features, variance, _ = np.split(every, ends, axis=2)
        return Views(logits, features, None if self._variance is None else variance)

    def warm_up(self, crops: int = 1) -> None:
        """Run on empty crops, so that the first frames do not pay for allocation and kernel choice."""
        for count in EIGHT_BIT_BATCHES if self.precision == "int8" else (max(crops, 1),):
            self(np.zeros((count, self._size, self._size, 3), np.uint8))


def choose_precision(name: str, device: torch.device) -> str:
    """The precision of that name, refused where the device does not have it; the one "auto" tries."""
    if name not in PRECISIONS:
        raise InputError(f"precision '{name}' is unknown; use {', '.join(PRECISIONS)}")
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
        raise InputError(f"device '{name}' was asked for, but torch finds no CUDA here; use auto or cpu")
    return device
