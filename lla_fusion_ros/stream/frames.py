"""What flows from stage to stage: one frame of one camera, richer after each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.engine.engine import FrameResult
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.images import CompressedImageMessage, ImageMessage
from lla_fusion_ros.types.views import Views


@dataclass(frozen=True, slots=True)
class CameraFrame:
    """An image and the boxes in it; nothing decoded yet. The image's header names the frame.

    Attributes:
        detections_type: the message type that the boxes came in.
        completed: when its second message came, in nanoseconds of the clock that `offer` was given.
        objects: those in space at its time, where they are known beside the boxes.
    """

    camera: str
    image: ImageMessage | CompressedImageMessage
    detections: FrameDetections | FrameDetections3D
    detections_type: str
    completed: int = 0
    objects: FrameDetections3D | None = None

    @property
    def header(self) -> Header:
        return self.image.header

    def __len__(self) -> int:
        return len(self.detections)


@dataclass(frozen=True, slots=True)
class CropFrame:
    """Objects of one stamp that came cut out already, nothing decoded yet.

    Attributes:
        crops: an image of each object; its `frame_id` is the object's track id.
        crops_type: their message type.
        completed: when the last of them came, in nanoseconds of the clock that `offer` was given.
    """

    camera: str
    crops: tuple[ImageMessage | CompressedImageMessage, ...]
    crops_type: str
    completed: int = 0

    @property
    def header(self) -> Header:
        return Header(self.crops[0].header.stamp, self.camera)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(crop.header.frame_id for crop in self.crops)

    def __len__(self) -> int:
        return len(self.crops)


@dataclass(frozen=True, slots=True)
class ScoreFrame:
    """Boxes and what the detector says of them, without an image; attributes as of a CameraFrame."""

    camera: str
    detections: FrameDetections
    detections_type: str
    completed: int = 0
    objects: FrameDetections3D | None = None

    @property
    def header(self) -> Header:
        return self.detections.header

    def __len__(self) -> int:
        return len(self.detections)


@dataclass(frozen=True, slots=True)
class ViewFrame:
    """The usable crops of a frame, seen by all networks.

    Attributes:
        ids: ids of the objects, see `identity`.
        bbox: x, y, theta, size_x, size_y in the image.     [views, 5]
        views: logits and features.                         [views, networks, ...]
        track_ids: what this camera's tracker calls the objects.
        pixels: the decoded image, for annotation; None where the views came over the wire.
        completed: as of a CameraFrame.
        members: of ids of objects in space, the tracks that have turned out to be theirs.
    """

    camera: str
    header: Header
    ids: tuple[str, ...]
    bbox: np.ndarray
    views: Views
    track_ids: tuple[str, ...]
    pixels: Pixels | None = None
    completed: int = 0
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class FusedFrame:
    """A frame after fusion: `result` speaks of the views that were fused."""

    frame: ViewFrame
    result: FrameResult

    @property
    def camera(self) -> str:
        return self.frame.camera

    @property
    def header(self) -> Header:
        return self.frame.header
