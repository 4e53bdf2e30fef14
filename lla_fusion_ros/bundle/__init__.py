"""The model file: one `.safetensors` with networks, posterior, fusers and warning models."""

from lla_fusion_ros.bundle.bundle import Bundle, load_bundle, make_bundle, save_bundle
from lla_fusion_ros.bundle.meta import BundleMeta

__all__ = ["Bundle", "BundleMeta", "load_bundle", "make_bundle", "save_bundle"]
