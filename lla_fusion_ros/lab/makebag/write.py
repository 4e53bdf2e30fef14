"""Frames with a known truth as a bag and a truth file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from lla_fusion_ros.bags.writer import BagWriter, check_removable
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.messages.images import write_compressed_image, write_image
from lla_fusion_ros.report.truth import Shown, Truth, TruthFrame, write_truth
from lla_fusion_ros.signworld.drive import CameraFrame
from lla_fusion_ros.signworld.geometry import Rig, optical_frame
from lla_fusion_ros.types.errors import BagError

Encoding = Literal["png", "jpeg", "raw"]
JPEG_QUALITY = 92
MISTAKEN_FOR = 3  # classes that a flickering detector takes a class for
TRUE_DIGITS = 3  # of the pixels of a true box
RIGHT_SCORE, WRONG_SCORE = (0.35, 0.95), (0.3, 0.75)  # what it is sure of, from and to


@dataclass(frozen=True, slots=True)
class SceneFrame:
    """One frame of one camera, with what the tracker says and what is true.

    Attributes:
        stamp: nanoseconds.
        image: RGB.                                          [height, width, 3] uint8
        boxes: cx, cy, w, h in pixels.                       [objects, 4]
        ids: track ids.
        classes: what each object really is; None for something outside the classes.
        said: what the detector says of them, of which its first class is told; None: nothing.
            [objects, classes]
        objects: which object each is, where `ids` do not tell.
    """

    camera: str
    stamp: int
    image: np.ndarray
    boxes: np.ndarray
    ids: tuple[str, ...]
    classes: tuple[str | None, ...]
    said: np.ndarray | None = None
    objects: tuple[str, ...] = ()


def drive_frames(drive: Iterable[CameraFrame]) -> Iterator[SceneFrame]:
    """The frames of a sign-world drive."""
    for frame in drive:
        classes = tuple(
            name if label >= 0 else None for name, label in zip(frame.names, frame.labels, strict=True)
        )
        yield SceneFrame(
            frame.camera, frame.stamp, frame.image, frame.boxes, frame.ids, classes, objects=frame.objects
        )


def flickering(
    frames: Iterable[SceneFrame], class_names: tuple[str, ...], share: float, seed: int = 0
) -> Iterator[SceneFrame]:
    """The frames with a detector that tells a class and its score, and in a `share` of the boxes a wrong one.

    What an object is mistaken for is always one of the same few classes, as with real detectors; it is less
    sure of a wrong class, but not by much. Of unknown objects it says anything, with low scores.
    """
    rng, same = np.random.default_rng([seed, 11]), np.random.default_rng(11)  # one detector on all roads
    count = len(class_names)
    rivals = np.array([same.choice(count, min(MISTAKEN_FOR, count), replace=False) for _ in range(count)])
    for frame in frames:
        said = np.empty((len(frame.ids), count))
        for row, name in enumerate(frame.classes):
            true = int(rng.integers(count)) if name is None else class_names.index(name)
            wrong = rng.random() < share
            says = int(rng.choice(rivals[true])) if wrong else true
            score = rng.uniform(*(WRONG_SCORE if wrong or name is None else RIGHT_SCORE))
            said[row] = (1 - score) / (count - 1)
            said[row, says] = score
        yield replace(frame, said=said)


@dataclass(frozen=True, slots=True)
class MadeBag:
    """What was written."""

    bag: Path
    truth: Path
    frames: int
    views: int
    tracks: int
    cameras: tuple[str, ...]
    seconds: float


def make_bag(
    frames: Iterable[SceneFrame],
    folder: Path,
    data_set: str,
    class_names: tuple[str, ...],
    encoding: Encoding = "png",
    overwrite: bool = False,
    with_ids: bool = True,
    rig: Rig | None = None,
) -> MadeBag:
    """Write `folder` (a bag) and `folder.truth.json`; after Ctrl-C both hold what was made so far.

    Args:
        with_ids: whether the boxes in the bag have their ids, as those of a tracker.
        rig: where the cameras are, written as camera_info and transforms.
    """
    check_place(folder, overwrite)
    truth_path = truth_beside(folder)
    true: dict[tuple[str, int], TruthFrame] = {}
    cameras: dict[str, None] = {}
    tracks: set[str] = set()
    count = views = 0
    first = last = 0
    with BagWriter(folder, about={"data_set": data_set}, overwrite=overwrite) as writer:
        try:
            for frame in frames:
                if rig is not None:
                    _write_geometry(writer, rig, frame, is_first=not count)
                _write_frame(writer, frame, encoding, with_ids, class_names)
                true[frame.camera, frame.stamp] = _true(frame)
                cameras[frame.camera] = None
                tracks.update(frame.ids)
                first = first or frame.stamp
                last = frame.stamp
                count += 1
                views += len(frame.ids)
        finally:
            write_truth(Truth({}, data_set, class_names, true), truth_path)
    return MadeBag(folder, truth_path, count, views, len(tracks), tuple(cameras), (last - first) / 1e9)


def truth_beside(folder: Path) -> Path:
    """Where the truth of a bag goes."""
    return folder.with_name(folder.name + ".truth.json")


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse where a bag or a truth file would be lost."""
    truth = truth_beside(folder)
    if truth.is_dir():
        raise BagError(f"'{truth}' is a folder, but the truth of bag '{folder}' goes there: name another bag")
    if overwrite:
        check_removable(folder)
        return
    for path in (folder, truth):
        if path.exists():
            raise BagError(f"'{path}' exists already: give another place or --overwrite")


def _write_frame(
    writer: BagWriter, frame: SceneFrame, encoding: Encoding, with_ids: bool, class_names: tuple[str, ...]
) -> None:
    header = Header(frame.stamp, optical_frame(frame.camera))
    bgr = cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR)
    if encoding == "raw":
        topic, kind = contract.image_topic(frame.camera), contract.IMAGE
        image = write_image(header, bgr, "bgr8")
    else:
        topic, kind = contract.compressed_topic(frame.camera), contract.COMPRESSED_IMAGE
        options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if encoding == "jpeg" else []
        data = cv2.imencode("." + encoding, bgr, options)[1].tobytes()
        image = write_compressed_image(header, data, f"bgr8; {encoding} compressed bgr8")
    writer.add("/" + topic, kind)
    writer.write("/" + topic, frame.stamp, image)
    boxes = np.zeros((len(frame.ids), 5))
    boxes[:, [0, 1, 3, 4]] = frame.boxes
    detections = "/" + contract.detections_topic(frame.camera)
    writer.add(detections, contract.DETECTIONS)
    ids = frame.ids if with_ids else ("",) * len(frame.ids)
    told = Listing(most=1, class_names=class_names, rest=False)
    writer.write(detections, frame.stamp, write_detections(header, ids, boxes, frame.said, told))


def _write_geometry(writer: BagWriter, rig: Rig, frame: SceneFrame, is_first: bool) -> None:
    if is_first:
        writer.add(contract.STATIC_TRANSFORMS, contract.TRANSFORMS_TYPE, latched=True)
        writer.write(contract.STATIC_TRANSFORMS, frame.stamp, write_transforms(rig.mounts))
    writer.add(contract.TRANSFORMS, contract.TRANSFORMS_TYPE)
    writer.write(contract.TRANSFORMS, frame.stamp, write_transforms([rig.vehicle(frame.stamp)]))
    info = rig.infos[frame.camera]
    topic = "/" + contract.camera_info_topic(frame.camera)
    writer.add(topic, contract.CAMERA_INFO)
    stamped = replace(info, header=replace(info.header, stamp=frame.stamp))
    writer.write(topic, frame.stamp, write_camera_info(stamped))


def _true(frame: SceneFrame) -> TruthFrame:
    """Its boxes and what they show."""
    boxes = tuple((cx, cy, w, h) for cx, cy, w, h in frame.boxes.round(TRUE_DIGITS).tolist())
    return TruthFrame(boxes, tuple(map(Shown, frame.objects or frame.ids, frame.classes)))
