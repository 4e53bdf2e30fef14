"""Frames with boxes in, views out: the crops of all waiting frames go through the networks together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lla_fusion_ros.engine.tracks import LONGEST_ID
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops, shows_something
from lla_fusion_ros.messages.detections import Detections
from lla_fusion_ros.messages.images import ImageMessage
from lla_fusion_ros.networks.classifier import AT_ONCE, Classifier
from lla_fusion_ros.stream.frames import CameraFrame, ViewFrame
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import Views

# Decodes an image whose encoding the package does not know itself (a node plugs cv_bridge in).
Fallback = Callable[[ImageMessage], Pixels]
# More crops than this go through in several batches: bounds memory, costs nothing.
LARGEST_BATCH = 1024
# With a helper: the networks begin as soon as so many crops are cut, while it decodes the next images.
BATCH_WITH_HELPER = 2 * AT_ONCE
# A frame, its pixels, the detections that can be used, their crops.
Prepared = tuple[CameraFrame, Pixels, Detections, np.ndarray]


class ClassifyStage:
    """Decode, check, crop, classify. What cannot be used is counted and left out; nothing else is raised.

    Args:
        helper: decode and crop in a thread of its own, so that a second core works while the networks run.
    """

    def __init__(
        self,
        classifier: Classifier,
        size: int,
        margin: float,
        settings: StreamSettings,
        tally: Tally,
        fallback: Fallback | None = None,
        helper: bool = False,
    ) -> None:
        self.settings = settings
        self._classifier = classifier
        self._size = size
        self._margin = margin
        self._tally = tally
        self._fallback = fallback
        self._helper = ThreadPoolExecutor(1, "decode") if helper else None

    def __call__(self, frames: Sequence[CameraFrame]) -> list[ViewFrame]:
        """One ViewFrame for each frame whose image could be decoded, in the same order."""
        result = [view for batch in self._batches(frames) for view in self._classified(batch)]
        for view in result:
            self._tally.add(view.camera, "frames")
            self._tally.add(view.camera, "crops", len(view.ids))
        return result

    def _batches(self, frames: Sequence[CameraFrame]) -> Iterator[list[Prepared]]:
        """What goes through the networks together: all, or what a helper has ready."""
        if self._helper is None or len(frames) == 1:
            yield _usable(map(self._prepare, frames))
            return
        batch: list[Prepared] = []
        for part in self._helper.map(self._prepare, frames):
            batch += _usable([part])
            if sum(len(crops) for _, _, _, crops in batch) >= BATCH_WITH_HELPER:
                yield batch
                batch = []
        yield batch

    def _classified(self, prepared: list[Prepared]) -> list[ViewFrame]:
        if not prepared:
            return []
        views = self._classify(np.concatenate([crops for _, _, _, crops in prepared]))
        result = []
        start = 0
        for frame, pixels, detections, own in prepared:
            rows = slice(start, start + len(own))
            start += len(own)
            result.append(
                ViewFrame(
                    frame.camera, frame.header, detections.ids, detections.bbox, views.take(rows), pixels
                )
            )
        return result

    def _classify(self, crops: np.ndarray) -> Views:
        if len(crops) <= LARGEST_BATCH:
            return self._classifier(crops)
        parts = [
            self._classifier(crops[at : at + LARGEST_BATCH]) for at in range(0, len(crops), LARGEST_BATCH)
        ]
        return Views(
            np.concatenate([part.logits for part in parts]), np.concatenate([part.features for part in parts])
        )

    def _prepare(self, frame: CameraFrame) -> Prepared | None:
        try:
            pixels = self._decode(frame)
        except InputError:
            self._tally.drop(frame.camera, {"bad_image": 1})
            return None
        detections = self._named(frame)
        check = check_boxes(detections.boxes, pixels.shape, self.settings.min_box_size)
        if check.reasons:
            self._tally.drop(frame.camera, check.reasons)
        rows = self._at_most(np.flatnonzero(check.keep), check.boxes, frame.camera)
        crops = cut_crops(pixels, check.boxes[rows], self._size, self._margin)
        seen = shows_something(crops)
        if not seen.all():
            self._tally.drop(frame.camera, {"no_contrast": int((~seen).sum())})
            rows, crops = rows[seen], crops[seen]
        return frame, pixels, detections.take(rows), crops

    def _decode(self, frame: CameraFrame) -> Pixels:
        try:
            return frame.image.pixels()
        except InputError:
            if self._fallback is None or not isinstance(frame.image, ImageMessage):
                raise
            return self._fallback(frame.image)

    def _named(self, frame: CameraFrame) -> Detections:
        """The detections that can be tracked."""
        ids = frame.detections.ids
        usable = [row for row, name in enumerate(ids) if 0 < len(name) <= LONGEST_ID]
        if len(usable) == len(ids):
            return frame.detections
        empty = sum(not name for name in ids)
        reasons = {"empty_id": empty, "long_id": len(ids) - len(usable) - empty}
        self._tally.drop(frame.camera, {reason: count for reason, count in reasons.items() if count})
        return frame.detections.take(np.array(usable, np.intp))

    def _at_most(self, rows: np.ndarray, boxes: np.ndarray, camera: str) -> np.ndarray:
        """The rows of the `max_detections` largest boxes in the image: what is near matters most."""
        most = self.settings.max_detections
        if len(rows) <= most:
            return rows
        self._tally.drop(camera, {"too_many_detections": len(rows) - most})
        areas = boxes[rows, 2] * boxes[rows, 3]
        return np.sort(rows[np.argsort(-areas, kind="stable")[:most]])


def _usable(parts: Iterable[Prepared | None]) -> list[Prepared]:
    return [part for part in parts if part is not None]
