"""Tracks of a data set as camera frames: their images pasted side by side into a plain scene."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import cv2
import numpy as np

from lla_fusion_ros.lab.makebag.write import SceneFrame
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

# An image is continued over its edge by this share of its side, so that a crop with a margin sees no seam.
_SEAM = 0.3


@dataclass(frozen=True, slots=True)
class PasteSettings:
    """How tracks become a recording.

    Attributes:
        cameras: how many; the images of a one-camera data set are dealt out to them in turn.
        objects: tracks in view at the same time.
        rate: frames per second of each camera.
        gap: frames between the end of a track and the next one in its place.
        start: stamp of the first frame, nanoseconds.
    """

    cameras: int = 1
    objects: int = 6
    rate: float = 10.0
    gap: int = 2
    width: int = 640
    height: int = 480
    start: int = 1_700_000_000_000_000_000

    def __post_init__(self) -> None:
        for name, low in (("cameras", 1), ("objects", 1), ("gap", 0), ("width", 64), ("height", 64)):
            if getattr(self, name) < low:
                raise InputError(f"{name} is {getattr(self, name)}, it must be at least {low}")
        if not 0 < self.rate <= 1000:
            raise InputError(f"rate is {self.rate:g}, it must be above 0 and at most 1000")


def paste_frames(trackset: TrackSet, settings: PasteSettings) -> Iterator[SceneFrame]:
    """Play the tracks one after the other in each place of the scene, until all have been shown."""
    places, background = _Places(settings), _background(settings)
    waiting = deque(track for track in trackset.tracks if track.frames)
    players = [_play(waiting, settings) for _ in range(settings.objects)]
    for step in count():
        shown = [next(player, None) for player in players]
        if not any(shown):
            return
        for camera in range(settings.cameras):
            yield _compose(trackset, settings, places, background, shown, camera, step)


def _play(waiting: deque[Track], settings: PasteSettings) -> Iterator[tuple[Track, list[Frame | None]]]:
    """What one place shows: at each step a track and the image that each camera has of it, if any."""
    while waiting:
        track = waiting.popleft()
        images = _by_camera(track, settings.cameras)
        for step in range(max(map(len, images)) + settings.gap):
            yield track, [own[step] if step < len(own) else None for own in images]


class _Places:
    """A grid of equal cells, one for each object in view."""

    def __init__(self, settings: PasteSettings) -> None:
        shape = settings.width / settings.height
        self._columns = max(1, round(np.sqrt(settings.objects * shape)))
        rows = -(-settings.objects // self._columns)
        self.width = settings.width // self._columns
        self.height = settings.height // rows

    def corner(self, place: int) -> tuple[int, int]:
        """Left and top of a cell."""
        row, column = divmod(place, self._columns)
        return column * self.width, row * self.height


def _by_camera(track: Track, cameras: int) -> list[list[Frame]]:
    """The track's images for each camera, in time order."""
    frames = sorted(track.frames, key=lambda frame: frame.time)
    taken = {frame.camera for frame in frames}
    if len(taken) > 1:
        return [[frame for frame in frames if frame.camera % cameras == index] for index in range(cameras)]
    return [frames[index::cameras] for index in range(cameras)]


def _compose(
    trackset: TrackSet,
    settings: PasteSettings,
    places: _Places,
    background: np.ndarray,
    shown: Sequence[tuple[Track, list[Frame | None]] | None],
    camera: int,
    step: int,
) -> SceneFrame:
    scene = background.copy()
    boxes, ids, classes = [], [], []
    for place, playing in enumerate(shown):
        if playing is None or (frame := playing[1][camera]) is None:
            continue
        track = playing[0]
        boxes.append(_paste(scene, frame, places, place))
        ids.append(track.id)
        classes.append(trackset.class_names[track.label] if track.label >= 0 else None)
    stamp = settings.start + round(step / settings.rate * 1e9)
    array = np.array(boxes, float).reshape(-1, 4)
    return SceneFrame(f"camera_{camera}", stamp, scene, array, tuple(ids), tuple(classes))


def _paste(scene: np.ndarray, frame: Frame, places: _Places, place: int) -> tuple[float, float, float, float]:
    """Put an image into its cell, shrunk where it is too large; returns the object's cx, cy, w, h."""
    height, width = frame.image.shape[:2]
    seam = int(np.ceil(_SEAM * max(height, width)))
    image = cv2.copyMakeBorder(frame.image, seam, seam, seam, seam, cv2.BORDER_REPLICATE)
    scale = min(1.0, places.width / image.shape[1], places.height / image.shape[0])
    if scale < 1.0:
        size = max(1, int(image.shape[1] * scale)), max(1, int(image.shape[0] * scale))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    left, top = places.corner(place)
    left += (places.width - image.shape[1]) // 2
    top += (places.height - image.shape[0]) // 2
    scene[top : top + image.shape[0], left : left + image.shape[1]] = image
    x0, y0, x1, y1 = ((value + seam) * scale for value in frame.box)
    return left + (x0 + x1) / 2, top + (y0 + y1) / 2, x1 - x0, y1 - y0


def _background(settings: PasteSettings) -> np.ndarray:
    """A plain evening sky over a plain road; smooth, so that lossless files stay small."""
    rows = np.linspace(0, 1, settings.height)[:, None]
    sky, road = np.array([96.0, 108.0, 124.0]), np.array([60.0, 58.0, 56.0])
    column = np.where(rows < 0.6, sky * (1 - 0.3 * rows), road * (0.7 + 0.3 * rows))
    return np.repeat(column[:, None, :].astype(np.uint8), settings.width, axis=1)
