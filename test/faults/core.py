"""What the nodes ought to say: the package's core alone, without a graph, a process or a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.detections import adapter_for
from lla_fusion_ros.messages.contract import DETECTIONS
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frames import CameraFrame, FusedFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import FusionSettings
from support.camera import pmf_of, stamp_of

TOLERANCE = 1e-4
_DETECTIONS = adapter_for(DETECTIONS)


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame as it is sent: the bytes of its two messages."""

    camera: str
    stamp: int
    image: bytes
    detections: bytes
    compressed: bool


@lru_cache(maxsize=1)
def _model() -> tuple[Bundle, Classifier]:
    bundle = load_bundle(find_model("signworld"))
    return bundle, Classifier(bundle, "cpu", "auto")


class Core:
    """Tells what a node that saw just these frames, in this order, would publish."""

    def __init__(
        self, cameras: Sequence[str], settings: FusionSettings | None = None, identity: str = "global"
    ) -> None:
        stream = StreamSettings(identity=identity)
        self._perception = Perception(*_model(), cameras, stream, settings or FusionSettings())

    def take(self, shot: Shot) -> FusedFrame | None:
        """The fused frame, or None where nothing of the frame can be used."""
        parse: Any = parse_compressed_image if shot.compressed else parse_image
        found = _DETECTIONS.read(shot.detections)
        frame = CameraFrame(shot.camera, parse(shot.image), found, DETECTIONS)
        fused = self._perception.fuse(self._perception.classify([frame]))
        return fused[0] if fused else None

    def losses(self, camera: str) -> Counter[str]:
        """What was not used of a camera's frames, by reason."""
        counts = self._perception.tally.of(camera)
        return Counter({key: count for key, count in counts.items() if key.startswith("dropped_")})


def difference(message: Any, expected: FusedFrame) -> str:
    """What is wrong with a fused message; empty where nothing is."""
    header = expected.frame.header
    if (message.header.frame_id, stamp_of(message)) != (header.frame_id, header.stamp):
        return f"a frame of {message.header.frame_id} at {stamp_of(message)}, expected {header}"
    ids = tuple(detection.id for detection in message.detections)
    if ids != expected.result.ids:
        return f"frame {header}: tracks {ids}, expected {expected.result.ids}"
    for detection, pmf in zip(message.detections, expected.result.pmf, strict=True):
        off = float(np.abs(pmf_of(detection) - pmf).max())
        if not off < TOLERANCE:  # also where it is not a number
            return f"frame {header}: track {detection.id} is {off:.3g} from what its frames say"
    return ""
