"""What the core makes of frames without any message in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FrameResult, FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.networks.classifier import Classifier

Frame = tuple[str, int, np.ndarray, Sequence[str], Any]  # camera, stamp, RGB image, ids of objects, boxes


def reference(bundle: Bundle, frames: Iterable[Frame]) -> list[FrameResult]:
    classifier, engine = Classifier(bundle, "cpu", "auto"), FusionEngine(bundle)
    result = []
    for camera, stamp, image, ids, boxes in frames:
        crops = cut_crops(Pixels(image, "rgb"), boxes, bundle.input_size, bundle.crop_margin)
        result.append(engine.update(Observation(camera, stamp, tuple(ids), classifier(crops))))
    return result
