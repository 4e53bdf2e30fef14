"""A device that holds no numbers, torch's "meta", with its traffic to the host counted.

Whatever would make the host wait for a real device (reading a number, a boolean, the places of nonzeros)
raises here, for there is nothing to read; copies in both directions are written down.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MOVES = ("aten::to", "aten::_to_copy", "aten::copy_")


class FakeDevice(TorchDispatchMode):
    """`with FakeDevice() as device: ...; device.traffic` is a list of (direction, shape), and
    `device.sources` the host memory that copies to the device were made from."""

    name = "meta"

    def __init__(self) -> None:
        super().__init__()
        self.traffic: list[tuple[str, tuple[int, ...]]] = []
        self.sources: list[int] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function._schema.name not in MOVES:
            return function(*args, **kwargs)
        source, target = _ends(function._schema.name, args, kwargs)
        if source.device.type == target.type:
            return function(*args, **kwargs)
        if target.type == self.name:
            self.traffic.append(("there", tuple(source.shape)))
            self.sources.append(source.data_ptr())
            return function(*args, **kwargs)
        self.traffic.append(("back", tuple(source.shape)))
        return torch.zeros(source.shape)  # nothing can come back; zeros stand for it


def _ends(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, torch.device]:
    """What is moved, and where to."""
    if name == "aten::copy_":
        return args[1], args[0].device
    devices = [value for value in (*args[1:], *kwargs.values()) if isinstance(value, torch.device)]
    return args[0], devices[0] if devices else args[0].device
