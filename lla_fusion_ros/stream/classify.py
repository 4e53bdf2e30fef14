"""Frames with boxes in, views out: the crops of all waiting frames go through the networks together.

How many frames are worked on together is decided here; how many crops a device then takes at once, and how
they are filled up, is the classifier's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lla_fusion_ros.detections.box_frame import to_image_pixels
from lla_fusion_ros.engine.tracks import LONGEST_ID
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops, shows_something
from lla_fusion_ros.messages.images import ImageMessage
from lla_fusion_ros.stream.frames import CameraFrame, ViewFrame
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally

if TYPE_CHECKING:
    from lla_fusion_ros.networks.classifier import Classifier

# Decodes an image whose encoding the package does not know itself (a node plugs cv_bridge in).
Fallback = Callable[[ImageMessage], Pixels]
# Frames of one step; more wait for the next, so that what is done gets out.
FRAMES_AT_ONCE = 64
# Frames of one step for each worker: enough to fill the networks, few enough to hold their images.
FRAMES_OF_A_WORKER = 8


@dataclass(frozen=True, slots=True)
class _Named:
    """A decoded frame whose boxes, in pixels of the image, have ids.  [boxes, 5]"""

    frame: CameraFrame
    pixels: Pixels
    bbox: np.ndarray
    tracks: tuple[str, ...]
    objects: tuple[str, ...]

    def take(self, rows: np.ndarray) -> _Named:
        tracks, objects = (tuple(ids[row] for row in rows) for ids in (self.tracks, self.objects))
        return _Named(self.frame, self.pixels, self.bbox[rows], tracks, objects)


# The boxes of a frame that can be used, and their crops.
Prepared = tuple[_Named, np.ndarray]


class ClassifyStage:
    """Decode, name, check, crop, classify. What cannot be used is counted and left out; nothing is raised.

    Args:
        wiring: by camera.
        identity: names the boxes, of each camera in the order of its frames.
        workers: threads that each decode and classify frames of their own, for a replay, which may take all
            cores. With 0 the caller's thread runs the networks, on as many cores as torch is told, and a
            second one decodes ahead.
    """

    def __init__(
        self,
        classifier: Classifier,
        size: int,
        margin: float,
        settings: StreamSettings,
        tally: Tally,
        wiring: Mapping[str, CameraWiring],
        identity: Identity,
        fallback: Fallback | None = None,
        workers: int = 0,
    ) -> None:
        self.settings = settings
        self._classifier = classifier
        self._size = size
        self._margin = margin
        self._tally = tally
        self._wiring = wiring
        self._identity = identity
        self._fallback = fallback
        self._workers = workers
        self.frames_at_once = FRAMES_OF_A_WORKER * workers or FRAMES_AT_ONCE
        self._pool = ThreadPoolExecutor(max(workers, 1), "classify", _one_torch_thread if workers else None)

    def __call__(self, frames: Sequence[CameraFrame]) -> list[ViewFrame]:
        """One ViewFrame for each frame whose image could be decoded, in the same order."""
        if self._workers:
            decoded = zip(frames, self._pool.map(self._decode, frames), strict=True)
            named = [self._name(frame, pixels) for frame, pixels in decoded if pixels is not None]
            starts = range(0, len(named), FRAMES_OF_A_WORKER)
            batches = [named[start : start + FRAMES_OF_A_WORKER] for start in starts]
            done: Iterable[list[ViewFrame]] = self._pool.map(self._cut_and_classify, batches)
        else:
            done = map(self._classified, self._prepared_ahead(frames))
        result = [view for batch in done for view in batch]
        for view in result:
            self._tally.add(view.camera, "frames")
            self._tally.add(view.camera, "crops", len(view.ids))
        return result

    def _cut_and_classify(self, frames: Sequence[_Named]) -> list[ViewFrame]:
        return self._classified(list(map(self._cut, frames)))

    def _prepared_ahead(self, frames: Sequence[CameraFrame]) -> Iterator[list[Prepared]]:
        """What goes through the networks together: all, or what is ready as soon as it fills them twice."""
        if len(frames) == 1:
            yield _usable(map(self._prepare, frames))
            return
        batch: list[Prepared] = []
        for part in self._pool.map(self._prepare, frames):  # one thread, so frames are named in order
            batch += _usable([part])
            if sum(len(crops) for _, crops in batch) >= 2 * self._classifier.at_once:
                yield batch
                batch = []
        yield batch

    def _classified(self, prepared: list[Prepared]) -> list[ViewFrame]:
        if not prepared:
            return []
        views = self._classifier(np.concatenate([crops for _, crops in prepared]))
        result = []
        start = 0
        for named, own in prepared:
            rows, frame = views.take(slice(start, start + len(own))), named.frame
            start += len(own)
            result.append(
                ViewFrame(
                    frame.camera,
                    frame.header,
                    named.objects,
                    named.bbox,
                    rows,
                    named.pixels,
                    frame.completed,
                    named.tracks,
                )
            )
        return result

    def _prepare(self, frame: CameraFrame) -> Prepared | None:
        pixels = self._decode(frame)
        return None if pixels is None else self._cut(self._name(frame, pixels))

    def _decode(self, frame: CameraFrame) -> Pixels | None:
        try:
            try:
                return frame.image.pixels()
            except InputError:
                if self._fallback is None or not isinstance(frame.image, ImageMessage):
                    raise
                return self._fallback(frame.image)
        except InputError:
            self._tally.drop(frame.camera, {"bad_image": 1})
            return None

    def _name(self, frame: CameraFrame, pixels: Pixels) -> _Named:
        """The boxes of a frame that can be tracked."""
        camera, found, wiring = frame.camera, frame.detections, self._wiring[frame.camera]
        height, width = pixels.shape[:2]
        bbox = to_image_pixels(found.bbox, wiring.box_frame, wiring.box_size, (width, height))
        stamp, type_name, size = frame.header.stamp, frame.detections_type, (width, height)
        tracks, objects = self._identity.name(camera, stamp, type_name, replace(found, bbox=bbox), size)
        named = _Named(frame, pixels, bbox, tracks, objects)
        usable = [row for row, name in enumerate(objects) if 0 < len(name) <= LONGEST_ID]
        if len(usable) == len(objects):
            return named
        empty = sum(not name for name in objects)
        reasons = {self._identity.unnamed(camera): empty, "long_id": len(objects) - len(usable) - empty}
        self._tally.drop(camera, {reason: count for reason, count in reasons.items() if count})
        return named.take(np.array(usable, np.intp))

    def _cut(self, named: _Named) -> Prepared:
        camera, boxes = named.frame.camera, named.bbox[:, [0, 1, 3, 4]]
        check = check_boxes(boxes, named.pixels.shape, self.settings.min_box_size)
        if check.reasons:
            self._tally.drop(camera, check.reasons)
        rows = self._at_most(np.flatnonzero(check.keep), check.boxes, camera)
        crops = cut_crops(named.pixels, check.boxes[rows], self._size, self._margin)
        seen = shows_something(crops)
        if not seen.all():
            self._tally.drop(camera, {"no_contrast": int((~seen).sum())})
            rows, crops = rows[seen], crops[seen]
        return named.take(rows), crops

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


def _one_torch_thread() -> None:
    """Workers run side by side, so each needs one core; torch's own threads would fight over them."""
    import torch

    torch.set_num_threads(1)
