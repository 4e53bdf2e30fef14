"""What every adapter gives: the detections of one frame, whoever published them, in pixels of its image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.types.errors import InputError

# How the detector made its input of the image:
#   image: its boxes are in the image's pixels already;       stretch: resized to box_size, aspect or not;
#   letterbox: resized to fit into it, even margins around;   crop: resized to cover it, the middle cut out.
BOX_FRAMES = ("image", "stretch", "letterbox", "crop")
# camera: the ids of one camera's tracker; global: one id is one object for every camera; none: no ids.
IdScope = Literal["camera", "global", "none"]
# (class, score) of every hypothesis of one detection, in the message's order.
Hypotheses = tuple[tuple[str, float], ...]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class FrameDetections:
    """Boxes in an image, as the detector gave them: sizes and numbers are checked later, against the image.

    Attributes:
        bbox: x, y of the centre, theta, width, height in pixels.                [detections, 5]
        ids: track ids, or None where the message gives none. Single ones may be empty.
        scores: hypotheses of each detection, classes as numbers or names; None where the message gives none.
        class_names: names of the classes that are numbers in `scores`, as far as the message tells.
    """

    header: Header
    bbox: np.ndarray
    ids: tuple[str, ...] | None
    scores: tuple[Hypotheses, ...] | None
    id_scope: IdScope
    class_names: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bbox)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes; without the scores."""
        return self.bbox.nbytes + sum(map(len, self.ids or ()))

    @property
    def boxes(self) -> np.ndarray:
        """cx, cy, w, h in pixels.  [detections, 4]"""
        return self.bbox[:, [0, 1, 3, 4]]

    @property
    def confidence(self) -> np.ndarray | None:
        """The best score of each detection, 0 where it has none; None where none has one.  [detections]"""
        scores = self.scores or ()
        if not any(scores):
            return None
        return np.array([max((score for _, score in own), default=0.0) for own in scores], np.float64)

    @property
    def classes(self) -> tuple[str, ...]:
        """The best class of each detection, "" where it has none."""
        if self.scores is None:
            return ("",) * len(self)
        return tuple(max(own, key=lambda pair: pair[1])[0] if own else "" for own in self.scores)

    def take(self, rows: Sequence[int] | np.ndarray) -> FrameDetections:
        """Some of them."""
        return replace(self, bbox=self.bbox[rows], ids=_some(self.ids, rows), scores=_some(self.scores, rows))


@dataclass(frozen=True, slots=True)
class FrameDetections3D:
    """Boxes in space, in the frame `header.frame_id`; to be projected into the cameras.

    Attributes:
        centre: metres.                             [detections, 3]
        orientation: quaternion x, y, z, w.         [detections, 4]
        size: metres along the box's own axes.      [detections, 3]
    """

    header: Header
    centre: np.ndarray
    orientation: np.ndarray
    size: np.ndarray
    ids: tuple[str, ...] | None
    scores: tuple[Hypotheses, ...] | None
    id_scope: IdScope

    def __len__(self) -> int:
        return len(self.centre)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes; without the scores."""
        return self.centre.nbytes + self.orientation.nbytes + self.size.nbytes + sum(map(len, self.ids or ()))

    def in_image(self, bbox: np.ndarray, rows: Sequence[int]) -> FrameDetections:
        """Some of them as boxes in an image.  [rows, 5]"""
        return FrameDetections(
            self.header, bbox, _some(self.ids, rows), _some(self.scores, rows), self.id_scope
        )


def _some(items: tuple[Item, ...] | None, rows: Sequence[int] | np.ndarray) -> tuple[Item, ...] | None:
    return None if items is None else tuple(items[row] for row in rows)


def given_ids(ids: tuple[str, ...], scope: IdScope) -> tuple[tuple[str, ...] | None, IdScope]:
    """The ids and their scope; a detector without a tracker leaves all of them empty, which is none."""
    return (None, "none") if ids and not any(ids) else (ids, scope)


def to_image_pixels(
    bbox: np.ndarray, box_frame: str, box_size: tuple[float, float], image_size: tuple[float, float]
) -> np.ndarray:
    """The same boxes in the image's pixels.

    Args:
        bbox: x, y, theta, width, height in the pixels of `box_frame`.  [boxes, 5]
        box_size: width and height of the network's input; not looked at for `image`.
        image_size: width and height of the image.
    """
    if box_frame not in BOX_FRAMES:
        raise InputError(f"box_frame is '{box_frame}', choose one of {', '.join(BOX_FRAMES)}")
    bbox = np.asarray(bbox, np.float64).reshape(-1, 5)
    if box_frame == "image":
        return bbox
    box, image = np.array(box_size, np.float64), np.array(image_size, np.float64)
    if not (box.shape == image.shape == (2,) and (box > 0).all() and (image > 0).all()):
        raise InputError(
            f"box_frame '{box_frame}' needs box_size, the width and height of the network's input, "
            f"got {tuple(box_size)} for an image of {tuple(image_size)}"
        )
    scale = box / image  # network pixels per image pixel
    if box_frame == "letterbox":
        scale[:] = scale.min()
    elif box_frame == "crop":
        scale[:] = scale.max()
    margin = (box - image * scale) / 2  # negative where something was cut off
    turn = np.stack([np.cos(bbox[:, 2]), np.sin(bbox[:, 2])], axis=1)
    across = turn / scale  # the box's own axes in the image, for one network pixel
    down = turn[:, ::-1] * (-1, 1) / scale
    mapped = np.empty_like(bbox)
    mapped[:, :2] = (bbox[:, :2] - margin) / scale
    mapped[:, 2] = np.where(bbox[:, 2] == 0, 0.0, np.arctan2(across[:, 1], across[:, 0]))
    mapped[:, 3] = bbox[:, 3] * np.hypot(*across.T)
    mapped[:, 4] = bbox[:, 4] * np.hypot(*down.T)
    return mapped
