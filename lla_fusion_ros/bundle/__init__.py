"""The model file: one `.safetensors` with networks, posterior, fusers and warning models.

A file (or the name of a shipped one) comes in, checked networks, fuser and warning model go out; never code.
Imports `types`, `networks`, `posterior`, `fusion` and `warnings`.
"""

from lla_fusion_ros.bundle.bundle import Bundle, load_bundle, make_bundle, save_bundle
from lla_fusion_ros.bundle.meta import BundleMeta

__all__ = ["Bundle", "BundleMeta", "load_bundle", "make_bundle", "save_bundle"]
