"""Loads the model file; free of torch, so that a fusion-only computer need not wait for it."""

from __future__ import annotations

from rclpy.impl.rcutils_logger import RcutilsLogger

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.bundle.resources import shipped_models
from lla_fusion_ros.types.errors import InputError


def load_model(name: str, logger: RcutilsLogger) -> Bundle:
    """The checked bundle; an LlaFusionError says what is wrong with it."""
    if not name:
        raise InputError(
            "parameter 'model' is not set: give the path of a model file, or the name of one that ships: "
            + ", ".join(shipped_models())
        )
    bundle = load_bundle(name)
    parts = f"{bundle.networks} networks, {bundle.classes} classes, sha256 {bundle.hash[:12]}"
    logger.info(f"model {bundle.source}: {parts}")
    return bundle
