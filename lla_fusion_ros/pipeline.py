"""The whole flow as two calls: `Classifier` (crops to views) and `FusionEngine` (views to fused classes)."""

from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.engine import FrameResult, FusionEngine, FusionModel, Observation
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.warnings.result import Level, Verdict, Verdicts

__all__ = [
    "Classifier",
    "FrameResult",
    "FusionEngine",
    "FusionModel",
    "FusionSettings",
    "Level",
    "Observation",
    "Verdict",
    "Verdicts",
]
