"""What numpy and torch call by different names: one formula serves fusing (numpy) and fitting (torch).

Operators, `clip`, `sum`, `mean` and indexing are the same in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lla_fusion_ros.types.pmf import softmax as numpy_softmax

Array = Any  # np.ndarray, or torch.Tensor while a fuser is fitted


def _is_tensor(x: Array) -> bool:
    return hasattr(x, "requires_grad")


def exp(x: Array) -> Array:
    return x.exp() if _is_tensor(x) else np.exp(x)


def log(x: Array) -> Array:
    return x.log() if _is_tensor(x) else np.log(x)


def ones_like(x: Array) -> Array:
    return x.new_ones(x.shape) if _is_tensor(x) else np.ones_like(x)


def largest(x: Array) -> Array:
    """Over the last axis, which stays."""
    return x.amax(-1, keepdim=True) if _is_tensor(x) else x.max(axis=-1, keepdims=True)


def softmax(x: Array) -> Array:
    """Over the last axis."""
    return x.softmax(-1) if _is_tensor(x) else numpy_softmax(x)
