"""Loads the model file and puts its networks on a device."""

from __future__ import annotations

import torch
from rclpy.impl.rcutils_logger import RcutilsLogger

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.pipeline import Classifier
from lla_fusion_ros.resources import find_model
from lla_fusion_ros.ros.settings import NetworkSettings

WARM_UP_CROPS = 16


def load_model(name: str, logger: RcutilsLogger) -> Bundle:
    """The checked bundle; an LlaFusionError says what is wrong with it."""
    path = find_model(name)
    bundle = load_bundle(path)
    logger.info(
        f"model {path}: {bundle.networks} networks, {bundle.classes} classes, sha256 {bundle.hash[:12]}"
    )
    return bundle


def make_classifier(bundle: Bundle, settings: NetworkSettings, logger: RcutilsLogger) -> Classifier:
    """Networks on their device, warmed up."""
    torch.set_num_threads(settings.threads)
    classifier = Classifier(bundle, settings.device, settings.half)
    if settings.device == "auto" and classifier.device.type == "cpu":
        logger.warning("no CUDA device found: the networks run on the CPU")
    classifier.warm_up(WARM_UP_CROPS)
    logger.info(f"networks ready on {classifier.device}")
    return classifier


def free_device() -> None:
    """Give cached device memory back."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
