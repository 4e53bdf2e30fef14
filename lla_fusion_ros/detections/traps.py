"""Detections that would be fused wrongly without anybody noticing: named, and what to do about it.

Fed frame by frame; what is found follows the newest boxes of each camera, so it goes when the cause goes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

from lla_fusion_ros.detections.frame import FrameDetections

WINDOW = 400  # newest boxes of a camera that are judged
LEAST = 30  # boxes before anything is said
LEAST_CORNER = 200  # ... about the part of the image they lie in
LARGEST = 1e9  # pixels; a box beyond that is a mistake, and its area may be no number
NORMALISED = 2.0  # pixels; boxes that never leave this are shares of the image
CORNER = (0.6, 0.75)  # share of the image's width and height that ordinary boxes exceed sooner or later
OF_A_FRAME = 5  # boxes by which a single frame may speak against ids
OVERLAP = 0.3  # IoU of two boxes of consecutive frames that are surely one object
SURE = 0.9  # probability of a class from which two cameras contradict each other
CONTRADICTIONS = 5  # frames
TOGETHER = 500_000_000  # ns between two cameras' views of one object
MOST_IDS = 1000  # remembered across cameras


@dataclass(frozen=True, slots=True)
class Finding:
    """`trap`: class_as_id, jumping_ids, corner, or contradicting_ids (of several cameras: no `camera`)."""

    trap: str
    camera: str
    sentence: str


@dataclass
class _Camera:
    """The newest boxes of one camera."""

    id_is_class: deque[tuple[str, bool]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    twins: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))  # frames: one id twice
    kept: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))  # same id as before at this place
    edges: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))  # x0, y0, x1, y1 of the window
    last_edges: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))
    last_ids: tuple[str, ...] = ()


class Traps:
    """Watches all cameras; `findings` is what was found so far, each trap and camera once."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._cameras: dict[str, _Camera] = {}
        self._findings: dict[tuple[str, str], Finding] = {}
        # id -> camera -> stamp and sure class of its newest view; and frames in which two cameras differed
        self._sure: OrderedDict[str, dict[str, tuple[int, str]]] = OrderedDict()
        self._contradictions: dict[str, int] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    def feed(self, camera: str, frame: FrameDetections, image_size: tuple[int, int] | None = None) -> None:
        """Look at the detections of one frame; `image_size` (width, height) where the image is known."""
        seen = self._cameras.setdefault(camera, _Camera())
        boxes = frame.boxes
        possible = (np.abs(boxes) < LARGEST).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1)
        good = np.flatnonzero(possible)[:WINDOW]
        half = boxes[good, 2:] / 2
        edges = np.concatenate([boxes[good, :2] - half, boxes[good, :2] + half], axis=1)
        if frame.ids is not None:
            ids = tuple(frame.ids[row] for row in good)
            classes = frame.classes
            self._class_as_id(camera, seen, ids, tuple(classes[row] for row in good))
            self._jumping(camera, seen, edges, ids)
        if image_size is not None and len(edges):
            self._corner(camera, seen, edges, image_size)

    def feed_classes(self, camera: str, stamp: int, ids: tuple[str, ...], pmf: np.ndarray) -> None:
        """Under `identity: global`: what this camera alone makes of a frame's objects.  [ids, classes]"""
        for track_id, name, p in zip(ids, pmf.argmax(axis=1), pmf.max(axis=1), strict=True):
            if p < SURE:
                continue
            views = self._sure.setdefault(track_id, {})
            self._sure.move_to_end(track_id)
            views[camera] = (stamp, str(name))
            for other, (other_stamp, other_name) in views.items():
                if other_name != str(name) and abs(stamp - other_stamp) <= TOGETHER:
                    self._contradict(track_id, other, other_name, camera, str(name))
            while len(self._sure) > MOST_IDS:
                self._contradictions.pop(self._sure.popitem(last=False)[0], None)

    def _class_as_id(
        self, camera: str, seen: _Camera, ids: tuple[str, ...], classes: tuple[str, ...]
    ) -> None:
        seen.id_is_class.extend(
            (own, bool(own) and own == name) for own, name in zip(ids, classes, strict=True)
        )
        seen.twins.append(len(set(ids)) < len(ids))
        if len(seen.id_is_class) < LEAST:
            return
        names = {own for own, _ in seen.id_is_class}
        always = all(same for _, same in seen.id_is_class)
        several = len(names) > 1 or any(seen.twins)  # one object may bear its class's number by chance
        some = ", ".join(f"'{name[:40]}'" for name in sorted(names)[:3])
        self._judge(
            "class_as_id",
            camera,
            always and several,
            f"every id of {camera} equals the class of its box ({some}): the detector puts the class "
            "into the id, and all objects of a class would be fused as one; use its tracker's topic; "
            "with identity 'auto' the built-in tracker gives the ids",
        )

    def _jumping(self, camera: str, seen: _Camera, edges: np.ndarray, ids: tuple[str, ...]) -> None:
        if len(edges) and len(seen.last_edges):
            overlap = _iou(edges, seen.last_edges)
            best = overlap.argmax(axis=1)
            for row in np.flatnonzero(overlap.max(axis=1) >= OVERLAP)[:OF_A_FRAME]:
                seen.kept.append(ids[row] == seen.last_ids[best[row]])
        seen.last_edges, seen.last_ids = edges, ids
        if len(seen.kept) < LEAST:
            return
        self._judge(
            "jumping_ids",
            camera,
            sum(seen.kept) <= 0.1 * len(seen.kept),
            f"the ids of {camera} change in every frame: of {len(seen.kept)} boxes that lie where one of the "
            f"frame before lay, {sum(seen.kept)} kept its id, so nothing is fused over time; use the "
            "tracker's topic; with identity 'auto' the built-in tracker gives the ids",
        )

    def _corner(self, camera: str, seen: _Camera, edges: np.ndarray, image_size: tuple[int, int]) -> None:
        seen.edges = np.concatenate([seen.edges, edges])[-WINDOW:]
        if len(seen.edges) < LEAST:
            return
        width, height = image_size
        x, y = seen.edges[:, 2:].max(axis=0)
        if max(x, y) <= NORMALISED:
            found = True
            sentence = (
                f"all boxes of {camera} lie within {x:.2g} x {y:.2g} pixels: they are shares of the image; "
                f"set {camera}.box_frame to stretch and {camera}.box_size to [1, 1]"
            )
        else:
            found = (
                len(seen.edges) >= LEAST_CORNER
                and x <= CORNER[0] * width
                and y <= CORNER[1] * height
                and _leaves_on_the_right(seen.edges)
            )
            sentence = (
                f"the last {len(seen.edges)} boxes of {camera} lie in the left {x / width:.0%} and upper "
                f"{y / height:.0%} of the {width} x {height} image: they seem to be in the pixels of another "
                f"image, of at least {x:.0f} x {y:.0f}; set {camera}.box_frame and {camera}.box_size to what "
                "the detector works on"
            )
        self._judge("corner", camera, found, sentence)

    def _contradict(
        self, track_id: str, first: str, first_class: str, second: str, second_class: str
    ) -> None:
        self._contradictions[track_id] = self._contradictions.get(track_id, 0) + 1
        self._judge(
            "contradicting_ids",
            "",
            self._contradictions[track_id] >= CONTRADICTIONS or ("contradicting_ids", "") in self._findings,
            f"{first} and {second} both see an object '{track_id[:40]}', one surely class {first_class}, the "
            f"other surely class {second_class}: their ids do not mean the same objects; "
            "set identity to camera",
        )

    def _judge(self, trap: str, camera: str, found: bool, sentence: str) -> None:
        if found:
            self._findings[trap, camera] = Finding(trap, camera, sentence)
        else:
            self._findings.pop((trap, camera), None)


def _leaves_on_the_right(edges: np.ndarray) -> bool:
    """Whether the boxes farthest right are as large as others, as where objects leave an image.

    Where all objects stand on the left of the road, those farthest right are the farthest away: small.
    """
    sizes = np.sqrt((edges[:, 2:] - edges[:, :2]).prod(axis=1))
    left, right = edges[:, 0].min(), edges[:, 2].max()
    at_the_right = edges[:, 2] > right - 0.2 * (right - left)
    fills = edges[:, 0].min() < 0.4 * right  # a parked vehicle may see a few things at few places for long
    return bool(fills and sizes[at_the_right].mean() >= 0.8 * np.median(sizes))


def _iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of boxes x0, y0, x1, y1.  [a, 4], [b, 4] -> [a, b]"""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    areas = (a[:, 2:] - a[:, :2]).prod(axis=1)[:, None] + (b[:, 2:] - b[:, :2]).prod(axis=1)[None]
    return shared / np.maximum(areas - shared, 1e-12)
