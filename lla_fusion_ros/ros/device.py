"""Puts the networks of a bundle on a device."""

from __future__ import annotations

import torch
from rclpy.impl.rcutils_logger import RcutilsLogger

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.ros.node_settings import NetworkSettings

WARM_UP_CROPS = 16


def make_classifier(bundle: Bundle, settings: NetworkSettings, logger: RcutilsLogger) -> Classifier:
    """Networks on their device, warmed up."""
    torch.set_num_threads(settings.threads)
    classifier = Classifier(bundle, settings.device, settings.precision)
    if settings.device == "auto" and classifier.device.type == "cpu":
        logger.warning("no CUDA device found: the networks run on the CPU")
    classifier.warm_up(WARM_UP_CROPS)
    logger.info(f"networks ready on {classifier.device}, {classifier.precision}")
    return classifier


def free_device() -> None:
    """Give cached device memory back."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
