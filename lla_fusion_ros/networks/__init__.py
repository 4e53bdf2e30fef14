"""Networks: crops in, logits and features out.

`network` is trunk and head, `ensemble` runs several at once, `classifier` is what nodes and replay call with
uint8 crops. Imports `types` and `images`.
"""

from lla_fusion_ros.networks.architectures import (
    Architecture,
    architecture_names,
    build_network,
    register_architecture,
)
from lla_fusion_ros.networks.eight_bits import NotInEightBitsError
from lla_fusion_ros.networks.ensemble import Ensemble
from lla_fusion_ros.networks.network import SplitNetwork, with_bias_feature
from lla_fusion_ros.networks.normalise import Normalisation

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
