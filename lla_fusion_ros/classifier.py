"""Crops in, views out: the networks of a bundle on one device."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.posterior.torch_variance import TorchVariance
from lla_fusion_ros.views import Views


class Classifier:
    """All networks of a bundle in one call: one copy to the device, one copy back, no other wait.

    Args:
        device: "auto" takes CUDA where there is one; any torch device name otherwise.
        half: 16-bit weights and activations; needs CUDA, where it is about twice as fast.
        networks: use only these members of the ensemble.
        variance: also compute the Laplace variance of every logit, in the same call on the device.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: str = "auto",
        half: bool = False,
        networks: tuple[int, ...] | None = None,
        variance: bool = False,
    ) -> None:
        self.device = choose_device(device)
        if half and self.device.type != "cuda":
            raise InputError(f"half precision needs a CUDA device, not '{self.device}'; set half to false")
        self._dtype = torch.float16 if half else torch.float32
        self._ensemble = bundle.ensemble(networks).to(self.device, self._dtype)
        self._normalise = bundle.normalisation()
        self._size = bundle.input_size
        self._variance: TorchVariance | None = None
        if variance:
            posterior = bundle.posterior() if networks is None else bundle.posterior().select(networks)
            self._variance = TorchVariance(posterior).to(self.device)
        self.classes, self.features = bundle.classes, self._ensemble.features
        self.networks = self._ensemble.networks

    def __call__(self, crops: np.ndarray) -> Views:
        """[crops, size, size, 3] uint8 RGB -> views with logits and features, float32."""
        if crops.dtype != np.uint8 or crops.shape[1:] != (self._size, self._size, 3):
            raise InputError(
                f"crops are {crops.dtype} of shape {crops.shape}, "
                f"expected uint8 [crops, {self._size}, {self._size}, 3]"
            )
        if len(crops) == 0:
            return Views(
                np.empty((0, self.networks, self.classes), np.float32),
                np.empty((0, self.networks, self.features), np.float32),
                None if self._variance is None else np.empty((0, self.networks, self.classes), np.float32),
            )
        with torch.inference_mode():
            host = torch.from_numpy(np.ascontiguousarray(crops))
            images = self._normalise(host.to(self.device, non_blocking=True), self._dtype)
            parts = list(self._ensemble(images))  # logits, features
            if self._variance is not None:
                parts.append(self._variance(parts[1]))
            # one tensor, so that one copy brings everything back
            every = torch.cat(parts, dim=2).to("cpu", torch.float32).numpy()
        ends = self.classes, self.classes + self.features
        logits, features, variance = np.split(every, ends, axis=2)
        return Views(logits, features, None if self._variance is None else variance)

    def warm_up(self, crops: int = 1) -> None:
        """Run once on empty crops, so that the first frame does not pay for allocation and kernel choice."""
        self(np.zeros((max(crops, 1), self._size, self._size, 3), np.uint8))


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
