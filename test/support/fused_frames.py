"""Fused frames made by hand, for what takes them: reports and tables."""

from __future__ import annotations

import numpy as np
from replay.scenes import START

from lla_fusion_ros.engine.engine import FrameResult
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.identity import track_id
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import REASONS, TESTED, Verdicts


def frame(
    index: int, ids: list[str], warned: bool = False, pixels: bool = True, camera: str = "left"
) -> FusedFrame:
    """One fused frame with a distribution that sharpens over time."""
    rng = np.random.default_rng(index)
    n = len(ids)
    logits = rng.normal(0, 2, (n, 2, 3)).astype(np.float32)
    image = Pixels(rng.integers(0, 256, (80, 120, 3), np.uint8), "bgr") if pixels else None
    views = Views(logits, np.ones((n, 2, 4), np.float32))
    boxes = np.tile([60.0, 40.0, 0.0, 30.0, 30.0], (n, 1))
    header, tracks = Header(START + index * 10**8, camera), tuple(track_id(camera, name) for name in ids)
    scene = ViewFrame(camera, header, tuple(ids), boxes, views, tracks, image)
    pmf = np.tile([0.5 + 0.4 * index / (index + 5), 0.3, 0.0], (n, 1))
    pmf[:, 2] = 1 - pmf.sum(axis=1)
    pmf = np.clip(pmf, 0, 1) / np.clip(pmf, 0, 1).sum(axis=1, keepdims=True)
    raised = np.zeros((n, len(REASONS)), bool)
    raised[:, 0] = warned
    zeros = np.zeros(n)
    verdicts = Verdicts(
        pmf,
        zeros + 0.5,
        zeros,
        zeros,
        np.ones((n, len(TESTED))),
        np.ones((n, 1), int),
        ("left",),
        raised[:, 0] * 1,
        raised,
        {},
    )
    result = FrameResult(
        np.arange(n), tuple(ids), pmf, verdicts, (), ("none",), (), {}, False, (), (), pmf, ((),) * n
    )
    return FusedFrame(scene, result)
