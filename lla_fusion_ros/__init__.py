"""Calibrated class distributions for tracked objects, over all cameras and all frames.

From images and boxes to fused classes and warnings. `frames` are yours, in the order of their time: the
camera's name, nanoseconds, RGB image [height, width, 3] uint8, boxes [n, 4] (centre x, centre y, width,
height in pixels; `check_boxes` sorts out bad ones) and n track ids, the same ones for the same object:

    from lla_fusion_ros import Classifier, FusionEngine, Observation, Pixels, cut_crops, load_bundle

    bundle = load_bundle("signworld")  # a file, or the name of a bundle that ships
    classify, engine = Classifier(bundle), FusionEngine(bundle)
    for camera, stamp, image, boxes, ids in frames:
        crops = cut_crops(Pixels(image, "rgb"), boxes, bundle.input_size, bundle.crop_margin)
        result = engine.update(Observation(camera, stamp, ids, classify(crops)))
        for track, pmf, verdict in zip(result.ids, result.pmf, result.verdicts):
            print(track, bundle.class_names[pmf.argmax()], f"{pmf.max():.3f}", *verdict.reasons)

The names below are imported when they are first used, so that `import lla_fusion_ros` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle, load_bundle
    from lla_fusion_ros.engine.engine import FrameResult, FusionEngine, Observation
    from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops
    from lla_fusion_ros.networks.classifier import Classifier
    from lla_fusion_ros.types.errors import LlaFusionError
    from lla_fusion_ros.types.settings import FusionSettings
    from lla_fusion_ros.types.views import Views
    from lla_fusion_ros.warnings.result import Level, Verdict

__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "Classifier",
    "FrameResult",
    "FusionEngine",
    "FusionSettings",
    "Level",
    "LlaFusionError",
    "Observation",
    "Pixels",
    "Verdict",
    "Views",
    "check_boxes",
    "cut_crops",
    "load_bundle",
]
_HOMES = {
    "Bundle": "lla_fusion_ros.bundle",
    "Classifier": "lla_fusion_ros.networks.classifier",
    "FrameResult": "lla_fusion_ros.engine.engine",
    "FusionEngine": "lla_fusion_ros.engine.engine",
    "FusionSettings": "lla_fusion_ros.types.settings",
    "Level": "lla_fusion_ros.warnings.result",
    "LlaFusionError": "lla_fusion_ros.types.errors",
    "Observation": "lla_fusion_ros.engine.engine",
    "Pixels": "lla_fusion_ros.images.crops",
    "Verdict": "lla_fusion_ros.warnings.result",
    "Views": "lla_fusion_ros.types.views",
    "check_boxes": "lla_fusion_ros.images.crops",
    "cut_crops": "lla_fusion_ros.images.crops",
    "load_bundle": "lla_fusion_ros.bundle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
