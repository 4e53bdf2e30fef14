"""From uint8 crops to what the networks take, on the device the crops are on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from lla_fusion_ros.types.errors import InputError

KINDS = ("fixed", "per_crop")


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How crops are scaled.

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
