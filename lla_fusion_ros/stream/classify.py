"""Frames with boxes in, views out: the crops of all waiting frames go through the networks together.

How many frames are worked on together is decided here; how many crops a device then takes at once, and how
they are filled up, is the classifier's matter.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lla_fusion_ros.detections.frame import FrameDetections3D, to_image_pixels
from lla_fusion_ros.engine.tracks import LONGEST_ID
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops, shows_something
from lla_fusion_ros.messages.images import CompressedImageMessage, ImageMessage
from lla_fusion_ros.stream.frames import CameraFrame, CropFrame, ViewFrame
from lla_fusion_ros.stream.identity import Identity
from lla_fusion_ros.stream.joining import Joining
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.tracking.objects import hidden
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import box_sides

if TYPE_CHECKING:
    from lla_fusion_ros.networks.classifier import Classifier

# Decodes an image whose encoding the package does not know itself (a node plugs cv_bridge in).
Fallback = Callable[[ImageMessage], Pixels]
# Frames of one step; more wait for the next, so that what is done gets out.
FRAMES_AT_ONCE = 64
# Calls of the networks in one step of a live node: for half of them frames are decoded meanwhile. In a longer
# step frames would wait that newer ones should replace.
CALLS_AT_ONCE = 4
# Threads that decode for a live node: a large JPEG takes longer than the networks, and cameras send together.
DECODERS = 2
# Frames of one step for each worker: enough to fill the networks, few enough to hold their images.
FRAMES_OF_A_WORKER = 8
Decoded = Pixels | list[Pixels | None]


@dataclass(frozen=True, slots=True)
class _Named:
    """A decoded frame whose objects have ids.

    Attributes:
        decoded: the image, or that of every object where they came cut out.
        bbox: boxes in pixels of their image.       [objects, 5]
        tracks, objects: their ids, see `identity`.
        members: see ViewFrame.
    """

    frame: CameraFrame | CropFrame
    decoded: Decoded
    bbox: np.ndarray
    tracks: tuple[str, ...]
    objects: tuple[str, ...]
    members: Mapping[str, tuple[str, ...]]

    def take(self, rows: np.ndarray) -> _Named:
        tracks, objects = (tuple(ids[row] for row in rows) for ids in (self.tracks, self.objects))
        own = self.decoded
        decoded = own if isinstance(own, Pixels) else [own[row] for row in rows]
        return _Named(self.frame, decoded, self.bbox[rows], tracks, objects, self.members)


# The boxes of a frame that can be used, and their crops.
Prepared = tuple[_Named, np.ndarray]


class ClassifyStage:
    """Decode, name, check, crop, classify. What cannot be used is counted and left out; nothing is raised.

    Args:
        wiring: by camera.
        identity: names the boxes, of each camera in the order of its frames.
        joining: knows where cameras look, for boxes in space.
        workers: threads that each decode and classify frames of their own, for a replay, which may take all
            cores. With 0 the caller's thread runs the networks, on as many cores as torch is told, and
            others decode and cut ahead.
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
        joining: Joining,
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
        self._joining = joining
        self._fallback = fallback
        self._workers = workers
        self.frames_at_once = FRAMES_OF_A_WORKER * workers or FRAMES_AT_ONCE
        self.objects_at_once = None if workers else CALLS_AT_ONCE * classifier.at_once
        self._pool = ThreadPoolExecutor(max(workers, 1), "classify", _one_torch_thread if workers else None)
        self._decoders = ThreadPoolExecutor(DECODERS, "decode")  # begin with the first frame they get

    def __call__(self, frames: Sequence[CameraFrame | CropFrame]) -> list[ViewFrame]:
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

    def _prepared_ahead(self, frames: Sequence[CameraFrame | CropFrame]) -> Iterator[list[Prepared]]:
        """What goes through the networks together: all, or what is ready as soon as it fills them twice."""
        if len(frames) == 1:
            yield _usable([self._prepare(frames[0], self._decode(frames[0]))])
            return
        batch: list[Prepared] = []
        decoded = [self._decoders.submit(self._decode, frame).result for frame in frames]
        # one thread, so frames are named in order
        for part in self._pool.map(lambda frame, wait: self._prepare(frame, wait()), frames, decoded):
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
            frame = named.frame
            rows = replace(views.take(slice(start, start + len(own))), size=box_sides(named.bbox))
            start += len(own)
            result.append(
                ViewFrame(
                    frame.camera,
                    frame.header,
                    named.objects,
                    named.bbox,
                    rows,
                    named.tracks,
                    named.decoded if isinstance(named.decoded, Pixels) else None,
                    frame.completed,
                    named.members,
                )
            )
        return result

    def _prepare(self, frame: CameraFrame | CropFrame, decoded: Decoded | None) -> Prepared | None:
        return None if decoded is None else self._cut(self._name(frame, decoded))

    def _decode(self, frame: CameraFrame | CropFrame) -> Decoded | None:
        """None where an image cannot be decoded; crops that cannot are left out one by one."""
        if isinstance(frame, CropFrame):
            return [self._pixels(frame.camera, crop) for crop in frame.crops]
        return self._pixels(frame.camera, frame.image)

    def _pixels(self, camera: str, image: ImageMessage | CompressedImageMessage) -> Pixels | None:
        try:
            try:
                return image.pixels()
            except InputError:
                if self._fallback is None or not isinstance(image, ImageMessage):
                    raise
                return self._fallback(image)
        except InputError:
            self._tally.drop(camera, {"bad_image": 1})
            return None

    def _name(self, frame: CameraFrame | CropFrame, decoded: Decoded) -> _Named:
        """The objects of a frame that can be tracked."""
        camera = frame.camera
        members: dict[str, tuple[str, ...]] = {}
        if isinstance(frame, CropFrame):
            assert isinstance(decoded, list)
            bbox = np.array([_whole(pixels) for pixels in decoded])
            tracks, objects = self._identity.name_crops(camera, frame.crops_type, frame.ids)
        else:
            assert isinstance(decoded, Pixels)
            wiring, size = self._wiring[camera], decoded.shape[::-1]
            found, given = frame.detections, wiring.box_frame
            if isinstance(found, FrameDetections3D):
                found, given = self._joining.projected(camera, found), "image"
                found = found.take(np.flatnonzero(~hidden(found.boxes)))
            bbox = to_image_pixels(found.bbox, given, wiring.box_size, size)
            found = replace(found, bbox=bbox)
            stamp = frame.header.stamp
            tracks, objects = self._identity.name(camera, stamp, frame.detections_type, found, size)
            if frame.objects is not None and self._identity.by_objects(camera):
                bbox, tracks, objects, members = self._joining.named_by_objects(frame, bbox, tracks, objects)
        named = _Named(frame, decoded, bbox, tracks, objects, members)
        usable = [row for row, name in enumerate(objects) if 0 < len(name) <= LONGEST_ID]
        if len(usable) == len(objects):
            return named
        reasons = self._identity.unnamed(camera, bbox)
        unused = set(range(len(objects))).difference(usable)
        self._tally.drop(camera, Counter("long_id" if objects[row] else reasons[row] for row in unused))
        return named.take(np.array(usable, np.intp))

    def _cut(self, named: _Named) -> Prepared:
        camera, boxes = named.frame.camera, named.bbox[:, [0, 1, 3, 4]]
        if isinstance(named.decoded, Pixels):
            check = check_boxes(boxes, named.decoded.shape, self.settings.min_box_size)
            if check.reasons:
                self._tally.drop(camera, check.reasons)
            rows = self._at_most(np.flatnonzero(check.keep), check.boxes, camera)
            crops = cut_crops(named.decoded, check.boxes[rows], self._size, self._margin)
        else:
            rows = self._large_enough(named.decoded, boxes, camera)
            own = [cut_crops(named.decoded[row], boxes[[row]], self._size, 0.0) for row in rows]
            crops = np.concatenate(own) if own else np.zeros((0, self._size, self._size, 3), np.uint8)
        seen = shows_something(crops)
        if not seen.all():
            self._tally.drop(camera, {"no_contrast": int((~seen).sum())})
            rows, crops = rows[seen], crops[seen]
        return named.take(rows), crops

    def _large_enough(self, decoded: list[Pixels | None], boxes: np.ndarray, camera: str) -> np.ndarray:
        """The rows of crops that show something large enough."""
        there = np.array([pixels is not None for pixels in decoded], bool)
        large = boxes[:, 2:].min(axis=1, initial=np.inf) >= self.settings.min_box_size
        if (there & ~large).any():
            self._tally.drop(camera, {"box_too_small": int((there & ~large).sum())})
        return np.flatnonzero(there & large)

    def _at_most(self, rows: np.ndarray, boxes: np.ndarray, camera: str) -> np.ndarray:
        """The rows of the `max_detections` largest boxes in the image: what is near matters most."""
        most = self.settings.max_detections
        if len(rows) <= most:
            return rows
        self._tally.drop(camera, {"too_many_detections": len(rows) - most})
        areas = boxes[rows, 2] * boxes[rows, 3]
        return np.sort(rows[np.argsort(-areas, kind="stable")[:most]])


def _whole(pixels: Pixels | None) -> tuple[float, float, float, float, float]:
    """The box around a whole image."""
    height, width = (0, 0) if pixels is None else pixels.shape
    return width / 2, height / 2, 0.0, float(width), float(height)


def _usable(parts: Iterable[Prepared | None]) -> list[Prepared]:
    return [part for part in parts if part is not None]


def _one_torch_thread() -> None:
    """Workers run side by side, so each needs one core; torch's own threads would fight over them."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
