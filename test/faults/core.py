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
from lla_fusion_ros.detections.adapter import image_adapter
from lla_fusion_ros.messages.contract import DETECTIONS, STATIC_TRANSFORMS
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frames import CameraFrame, FusedFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import FusionSettings
from support.camera import pmf_of, stamp_of

TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame as it is sent: the bytes of its two messages."""

    camera: str
    stamp: int
    image: bytes
    detections: bytes
    compressed: bool
    detections_type: str = DETECTIONS


@lru_cache(maxsize=2)
def _model(name: str, engine: str) -> tuple[Bundle, Classifier]:
    bundle = load_bundle(find_model(name))
    return bundle, Classifier(bundle, "cpu", "auto", engine=engine)


class Core:
    """Tells what a node that saw just these frames, in this order, would publish."""

    def __init__(
        self,
        cameras: Sequence[str],
        settings: FusionSettings | None = None,
        identity: str = "global",
        model: str = "signworld",
        engine: str = "auto",
    ) -> None:
        stream = StreamSettings(identity=identity)
        self._perception = Perception(*_model(model, engine), cameras, stream, settings or FusionSettings())
        self._before: dict[str, Counter[str]] = {}

    def reset(self) -> None:
        """As `~/reset`: what was learnt of the cameras stays, what was counted is no more."""
        self._perception.reset()
        self._before = {camera: self._perception.tally.of(camera) for camera in self._perception.cameras}

    def take_info(self, camera: str, message: bytes) -> None:
        self._perception.offer(camera, "camera_info", message)

    def take_transforms(self, message: bytes) -> None:
        self._perception.offer_transforms(STATIC_TRANSFORMS, message)

    def take(self, shot: Shot) -> FusedFrame | None:
        """The fused frame, or None where nothing of the frame can be used."""
        parse: Any = parse_compressed_image if shot.compressed else parse_image
        found = image_adapter(shot.detections_type).read(shot.detections)
        frame = CameraFrame(shot.camera, parse(shot.image), found, shot.detections_type)
        fused = self._perception.fuse(self._perception.classify([frame]))
        return fused[0] if fused else None

    def losses(self, camera: str) -> Counter[str]:
        """What was not used of a camera's frames, by reason."""
        counts = self._perception.tally.of(camera) - self._before.get(camera, Counter())
        return Counter({key: count for key, count in counts.items() if key.startswith("dropped_")})


class Names:
    """Which id of a node is which of the core's. The built-in tracker counts on where it was reset, so its
    ids need not be equal, but one must stay one."""

    def __init__(self) -> None:
        self._core: dict[str, str] = {}
        self._node: dict[str, str] = {}

    def agree(self, node: Sequence[str], core: Sequence[str]) -> bool:
        return len(node) == len(core) and all(
            self._core.setdefault(own, other) == other and self._node.setdefault(other, own) == own
            for own, other in zip(node, core, strict=True)
        )


def difference(message: Any, expected: FusedFrame, names: Names | None = None) -> str:
    """What is wrong with a fused message; empty where nothing is."""
    header = expected.frame.header
    if (message.header.frame_id, stamp_of(message)) != (header.frame_id, header.stamp):
        return f"a frame of {message.header.frame_id} at {stamp_of(message)}, expected {header}"
    ids, right = tuple(detection.id for detection in message.detections), expected.result.ids
    if not (ids == right if names is None else names.agree(ids, right)):
        return f"frame {header}: tracks {ids}, expected {right}"
    for detection, pmf in zip(message.detections, expected.result.pmf, strict=True):
        off = float(np.abs(pmf_of(detection) - pmf).max())
        if not off < TOLERANCE:  # also where it is not a number
            return f"frame {header}: track {detection.id} is {off:.3g} from what its frames say"
    return ""
