"""Test-time augmentation: slightly changed copies of one crop are more views of it by the same networks.

The paper's second case of fusion (C = 1, several inputs of one class) covers it: unlike the usual average, a
fuser that knows R knows that copies of one crop by one network are almost the same evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import Views


@dataclass(frozen=True, slots=True)
class Augmentation:
    """One small change of a crop; the default changes nothing.

    Attributes:
        right, down: shift as a share of the side.
        zoom: factor of size.
        turn: degrees, counter-clockwise.
        gain: factor of brightness.
        mirror: left and right swapped. Off in the defaults: a mirrored sign is another sign.
    """

    right: float = 0.0
    down: float = 0.0
    zoom: float = 1.0
    turn: float = 0.0
    gain: float = 1.0
    mirror: bool = False

    def __post_init__(self) -> None:
        if self.zoom <= 0 or self.gain <= 0:
            raise InputError(f"augmentation zoom {self.zoom} and gain {self.gain} must be positive")

    def __call__(self, crops: np.ndarray) -> np.ndarray:
        """[crops, size, size, 3] uint8 -> the same shape; pixels from outside repeat the edge."""
        out = crops[:, :, ::-1] if self.mirror else crops
        if (self.right, self.down, self.zoom, self.turn) != (0.0, 0.0, 1.0, 0.0):
            matrix = self._matrix(crops.shape[1])
            out = np.stack([_warp(crop, matrix) for crop in out]) if len(out) else out
        if self.gain != 1.0:
            out = np.clip(np.rint(out * self.gain), 0, 255).astype(np.uint8)
        return np.ascontiguousarray(out)

    def _matrix(self, size: int) -> np.ndarray:
        centre = (size - 1) / 2
        matrix = cv2.getRotationMatrix2D((centre, centre), self.turn, self.zoom)
        matrix[:, 2] += self.right * size, self.down * size
        return matrix


DEFAULT = (
    Augmentation(),
    Augmentation(right=0.06),
    Augmentation(right=-0.06),
    Augmentation(down=0.06),
    Augmentation(down=-0.06),
    Augmentation(zoom=1.1),
    Augmentation(zoom=0.9),
    Augmentation(turn=6.0),
    Augmentation(turn=-6.0),
    Augmentation(gain=0.8),
    Augmentation(gain=1.25),
)


def augmented_views(
    classifier: Callable[[np.ndarray], Views],
    crops: np.ndarray,
    augmentations: Sequence[Augmentation] = DEFAULT,
) -> tuple[Views, ...]:
    """The views of every crop under every augmentation, from one call of the networks.

    crops [n, size, size, 3] uint8; returns one Views of n rows per augmentation, in their order.
    """
    if not augmentations:
        raise InputError("test-time augmentation needs at least one augmentation")
    every = classifier(np.concatenate([augment(crops) for augment in augmentations]))
    count = len(crops)
    return tuple(every.take(slice(i * count, (i + 1) * count)) for i in range(len(augmentations)))


def fuse_augmented(fuser: Any, views: Sequence[Views]) -> np.ndarray:
    """The class distribution of each crop, its augmentations fused by any fuser.   [n, classes]"""
    state = fuser.initial(len(views[0]))
    for augmented in views:
        state = fuser.update(state, augmented)
    return fuser.predict(state)


def _warp(crop: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    size = crop.shape[1], crop.shape[0]
    return cv2.warpAffine(crop, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
