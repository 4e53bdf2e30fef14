"""Networks: crops in, logits and features of every network out.

`classifier` runs a bundle's networks in an engine: `torch_engine` (`ensemble` and `eight_bits` make them
quick there, `architectures` builds them by name) or `onnx_engine`. The names below are imported when they
are first used: a vehicle whose networks are ONNX graphs needs no torch. Imports types.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lla_fusion_ros.networks.architectures import (
        Architecture,
        architecture_names,
        build_network,
        register_architecture,
    )
    from lla_fusion_ros.networks.ensemble import Ensemble, with_bias_feature
    from lla_fusion_ros.networks.network import SplitNetwork
    from lla_fusion_ros.networks.torch_engine import Normalisation

__all__ = [
    "Architecture",
    "Ensemble",
    "Normalisation",
    "SplitNetwork",
    "architecture_names",
    "build_network",
    "register_architecture",
    "with_bias_feature",
]
_HOMES = {
    "Architecture": "architectures",
    "Ensemble": "ensemble",
    "Normalisation": "torch_engine",
    "SplitNetwork": "network",
    "architecture_names": "architectures",
    "build_network": "architectures",
    "register_architecture": "architectures",
    "with_bias_feature": "ensemble",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
