"""Loads the model file; free of torch, so that a fusion-only computer need not wait for it."""

from __future__ import annotations

from rclpy.impl.rcutils_logger import RcutilsLogger

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.resources import find_model, shipped_models


def load_model(name: str, logger: RcutilsLogger) -> Bundle:
    """The checked bundle; an LlaFusionError says what is wrong with it."""
    if not name:
        raise InputError(
            "parameter 'model' is not set: give the path of a model file, or the name of one that ships: "
            + ", ".join(shipped_models())
        )
    path = find_model(name)
    bundle = load_bundle(path)
    logger.info(
        f"model {path}: {bundle.networks} networks, {bundle.classes} classes, sha256 {bundle.hash[:12]}"
    )
    return bundle
