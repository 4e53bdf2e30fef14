"""Networks: crops in, logits and features of every network out.

`classifier` runs a bundle's networks on a device; `ensemble` and `eight_bits` make them quick there;
`architectures` builds them by name. Needs torch. Imports types.
"""

from lla_fusion_ros.networks.architectures import (
    Architecture,
    architecture_names,
    build_network,
    register_architecture,
)
from lla_fusion_ros.networks.classifier import Normalisation
from lla_fusion_ros.networks.eight_bits import NotInEightBitsError
from lla_fusion_ros.networks.ensemble import Ensemble, with_bias_feature
from lla_fusion_ros.networks.network import SplitNetwork

__all__ = [
    "Architecture",
    "Ensemble",
    "Normalisation",
    "NotInEightBitsError",
    "SplitNetwork",
    "architecture_names",
    "build_network",
    "register_architecture",
    "with_bias_feature",
]
