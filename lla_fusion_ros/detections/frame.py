"""What every adapter gives: the detections of one frame, whoever published them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lla_fusion_ros.messages.cdr import Header

# camera: the ids of one camera's tracker; global: one id is one object for every camera; none: no ids.
IdScope = Literal["camera", "global", "none"]
# (class, score) of every hypothesis of one detection, in the message's order.
Hypotheses = tuple[tuple[str, float], ...]


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


def given_ids(ids: tuple[str, ...], scope: IdScope) -> tuple[tuple[str, ...] | None, IdScope]:
    """The ids and their scope; a detector without a tracker leaves all of them empty, which is none."""
    return (None, "none") if ids and not any(ids) else (ids, scope)
