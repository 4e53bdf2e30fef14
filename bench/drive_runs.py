"""Whole drives through the engine: what networks see, kept in the user's cache, and what is fused."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, load_ensemble
from lla_fusion_ros.bundle.bundle import PMF_FUSERS
from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.detections.frame import FrameDetections
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import DETECTIONS, STATIC_TRANSFORMS, TRANSFORMS
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.messages.images import ImageMessage
from lla_fusion_ros.report.comparison import ONE_VIEW, SINGLE_FRAME
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.signworld.geometry import rig_of
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import CameraFrame, FusedFrame, ScoreFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.pmf import among_named
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import QUALITIES, Views
from lla_fusion_ros.warnings.result import REASONS

FAR = 14.0  # side of a box in pixels below which its picture shows little
SINGLE, ALONE = SINGLE_FRAME, ONE_VIEW
WAYS = {
    "global": "cameras with ids that mean the same object in all of them",
    "tracking": "cameras without ids: the built-in trackers, joined by geometry",
    "scores": "what single views say as a detector's scores, without networks; global ids",
}


@dataclass(frozen=True)
class DriveViews:
    """A drive as the fusion sees it, with the truth.

    Attributes:
        camera, stamp: of every frame, in the order of stamps.
        frame: of every box, its frame.                                     [boxes]
        boxes: cx, cy, w, h in pixels.                                      [boxes, 4]
        objects, names: whose box it is, and what that shows at the time.   [boxes]
        seen: the boxes that went through the networks.                     [views]
        views: what came out.
    """

    seed: int
    duration: float
    camera: np.ndarray
    stamp: np.ndarray
    frame: np.ndarray
    boxes: np.ndarray
    objects: np.ndarray
    names: np.ndarray
    seen: np.ndarray
    views: Views

    @property
    def sizes(self) -> np.ndarray:
        """Side of a square as large as the box.  [boxes]"""
        return np.asarray(np.sqrt(self.boxes[:, 2] * self.boxes[:, 3]))

    def frames(self) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
        """Camera, stamp, boxes and, among these, the views: their places."""
        ends = np.searchsorted(self.frame, np.arange(len(self.camera) + 1))
        views = np.searchsorted(self.seen, ends)
        for number, (camera, stamp) in enumerate(zip(self.camera.tolist(), self.stamp.tolist(), strict=True)):
            yield camera, stamp, np.arange(*ends[number : number + 2]), np.arange(*views[number : number + 2])


@dataclass(frozen=True)
class Told:
    """What was shown of every fused view, in order.

    Attributes:
        box: its place among the boxes of the drive.                               [n]
        track: the object it was taken for.                                        [n]
        top, p: the leading class and its probability.                             [n]
        truth, rival: probability of the true class and of the strongest other; of unknown objects 0.   [n]
        raised: which of REASONS held.                                             [n, reasons] bool
        mixed: whether its track has shown several objects so far.                 [n] bool
        joined: whether it was joined with a track of another object.              [n] bool
        far: whether it or all views of its track so far are smaller than FAR.     [n] bool
    """

    box: np.ndarray
    track: np.ndarray
    top: np.ndarray
    p: np.ndarray
    truth: np.ndarray
    rival: np.ndarray
    raised: np.ndarray
    mixed: np.ndarray
    joined: np.ndarray
    far: np.ndarray


@lru_cache(maxsize=2)
def drive_of(seed: int, duration: float) -> Drive:
    """The one of `make-bag --drive --seed SEED`: two cameras at 10 Hz."""
    return Drive(DriveSettings(seed=seed, duration=duration))


def drive_views(bundle: Bundle, seed: int, duration: float) -> DriveViews:
    """From the cache, else rendered."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lla_fusion_ros" / "drives"
    file = cache / f"{seed}-{duration:g}s-{_networks_key(bundle)}.npz"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.npz")
        arrays: dict[str, Any] = _render(bundle, drive_of(seed, duration))
        np.savez_compressed(partial, **arrays)
        partial.replace(file)
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    views = Views(
        **{name.removeprefix("views."): arrays.pop(name) for name in list(arrays) if "views." in name}
    )
    return DriveViews(seed, duration, views=views, **arrays)


def told_of(
    model: str, ways: tuple[str, ...], rules: tuple[str, ...], duration: float, seed: int
) -> dict[tuple[str, str], Told]:
    """One drive by way and rule, with single frames, the default, and the default of one view."""
    bundle = _loaded(model)
    drive = drive_views(bundle, seed, duration)
    told: dict[tuple[str, str], Told] = {}
    for way in ways:
        used = scores_only(bundle) if way == "scores" else bundle
        for rule in dict.fromkeys((*rules, used.meta.default_fuser)):
            if way == "scores" and rule not in PMF_FUSERS:
                continue
            told[way, rule], told[way, SINGLE] = _run(drive, bundle, way, rule)
        told[way, ALONE], _ = _run(drive, bundle, way, used.meta.default_fuser, alone=True)
    return told


def scores_only(bundle: Bundle) -> Bundle:
    """The uncalibrated bundle for scores of these classes, as a replay makes it."""
    return score_bundle(bundle.class_names)


@lru_cache(maxsize=1)
def _loaded(model: str) -> Bundle:
    return load_ensemble(model)


def _run(drive: DriveViews, bundle: Bundle, way: str, rule: str, alone: bool = False) -> tuple[Told, Told]:
    """What the rule and what single frames show; `alone`: every view is an object of its own."""
    cameras = tuple(dict.fromkeys(drive.camera.tolist()))
    scores, tracking = way == "scores", way == "tracking" and not alone
    stream = StreamSettings(identity="auto" if tracking else "global")
    fusion = FusionSettings(
        fuser=rule,
        changing_classes=",".join(bundle.meta.changing) if scores else "",
        idle_timeout=0.1 if alone else FusionSettings().idle_timeout,  # few objects at a time
    )
    used = scores_only(bundle) if scores else bundle
    perception = Perception(used, None, cameras, stream, fusion)
    rig = rig_of(drive_of(drive.seed, drive.duration))
    if tracking:
        perception.offer_transforms(STATIC_TRANSFORMS, write_transforms(rig.mounts))
        for camera in cameras:
            perception.offer(camera, "camera_info", write_camera_info(rig.infos[camera]))
    numbers = {name: number for number, name in enumerate(bundle.class_names)}
    fused, single = (_Teller(drive, numbers) for _ in range(2))
    for camera, stamp, boxes, views in drive.frames():
        header = Header(stamp, camera)
        bbox = np.insert(drive.boxes[boxes], 2, 0.0, axis=1)
        places = np.searchsorted(boxes, drive.seen[views])  # of the views among the boxes
        ids = tuple(f"{number}" if alone else str(drive.objects[number]) for number in boxes.tolist())
        if tracking:
            perception.offer_transforms(TRANSFORMS, write_transforms([rig.vehicle(stamp)]))
            found = FrameDetections(header, bbox, None, None, "none")
            _, ids = perception.identity.name(camera, stamp, DETECTIONS, found, None)
        named = np.array([bool(ids[place]) for place in places], bool)
        places, seen = places[named], drive.views.take(views[named])
        own = tuple(ids[place] for place in places)
        if scores:
            frame = _scored(perception, header, own, bbox[places], seen, bundle)
        else:
            frame = ViewFrame(camera, header, own, bbox[places], seen, own, completed=stamp)
        whose = dict(zip(own, boxes[places].tolist(), strict=True))
        for done in perception.fuse([frame]):
            reserved = len(used.reserved)
            fused.add(done, among_named(done.result.pmf, reserved), whose)
            single.add(done, among_named(view_pmf(done.frame)[done.result.kept], reserved), whose)
    return fused.told(), single.told()


def _scored(
    perception: Perception,
    header: Header,
    ids: tuple[str, ...],
    bbox: np.ndarray,
    views: Views,
    bundle: Bundle,
) -> ViewFrame:
    """The frame as of a detector that tells what a single view does."""
    plain = ViewFrame(header.frame_id, header, ids, bbox, views, ids)
    said = tuple(tuple(zip(bundle.class_names, pmf, strict=True)) for pmf in view_pmf(plain).tolist())
    found = FrameDetections(header, bbox, ids, said, "global")
    stage: Any = perception.classify
    (frame,) = stage([ScoreFrame(header.frame_id, found, DETECTIONS, header.stamp)])
    assert isinstance(frame, ViewFrame)
    return frame


class _Teller:
    """Collects a Told."""

    def __init__(self, drive: DriveViews, numbers: dict[str, int]) -> None:
        self._objects, self._sizes = drive.objects.tolist(), drive.sizes.tolist()
        self._labels = [numbers.get(name, -1) for name in drive.names.tolist()]
        self._of: dict[str, list[str]] = {}  # track -> objects it has shown, the newest last
        self._largest: dict[str, float] = {}  # track -> its largest box
        self._rows: list[tuple[Any, ...]] = []

    def add(self, fused: FusedFrame, pmfs: np.ndarray, whose: dict[str, int]) -> None:
        result = fused.result
        for row, (place, pmf) in enumerate(zip(result.kept.tolist(), pmfs, strict=True)):
            own = fused.frame.ids[place]
            box = whose[own]
            thing, label, size = self._objects[box], self._labels[box], self._sizes[box]
            shown = self._of.setdefault(own, [])
            if thing in shown:
                shown.remove(thing)
            shown.append(thing)
            self._largest[own] = max(size, self._largest.get(own, 0.0))
            tracks = {own, *result.members[row]}
            top = int(pmf.argmax())
            rest = np.delete(pmf, label).max() if label >= 0 else 0.0
            self._rows.append(
                (
                    box,
                    result.ids[row],
                    top,
                    float(pmf[top]),
                    float(pmf[label]) if label >= 0 else 0.0,
                    float(rest),
                    result.verdicts.raised[row],
                    len(shown) > 1,
                    any(self._of.get(track, [thing])[-1] != thing for track in tracks),
                    size < FAR or max(self._largest.get(track, 0.0) for track in tracks) < FAR,
                )
            )

    def told(self) -> Told:
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        if not columns:
            columns = [np.zeros(0)] * len(fields(Told))
            columns[6] = np.zeros((0, len(REASONS)), bool)
        return Told(*columns)


def _render(bundle: Bundle, drive: Drive) -> dict[str, np.ndarray]:
    """The arrays of a DriveViews, by the pipeline of images and boxes."""
    import torch

    from lla_fusion_ros.networks.classifier import Classifier

    torch.set_num_threads(1)
    stream = StreamSettings(identity="global")
    perception = Perception(
        bundle, Classifier(bundle, "cpu", "auto", threads=1), drive.camera_names, stream, None
    )
    stage: Any = perception.classify
    camera, stamp, frame, boxes, objects, names, seen, views = ([] for _ in range(8))  # type: ignore[var-annotated]
    for number, shot in enumerate(drive):
        camera.append(shot.camera)
        stamp.append(shot.stamp)
        header, (height, width, _) = Header(shot.stamp, shot.camera), shot.image.shape
        image = ImageMessage(
            header, height, width, "rgb8", False, 3 * width, memoryview(shot.image.tobytes())
        )
        bbox = np.insert(shot.boxes, 2, 0.0, axis=1)
        found = FrameDetections(header, bbox, shot.objects, None, "global")
        (viewed,) = stage([CameraFrame(shot.camera, image, found, DETECTIONS)])
        seen += [len(frame) + shot.objects.index(name) for name in viewed.ids]
        views.append(viewed.views)
        frame += [number] * len(shot.objects)
        boxes.append(shot.boxes)
        objects += shot.objects
        names += shot.names
    parts = {
        f"views.{each.name}": np.concatenate([getattr(part, each.name) for part in views])
        for each in fields(Views)
        if all(getattr(part, each.name) is not None for part in views)
    }
    return {
        **parts,
        "camera": np.array(camera),
        "stamp": np.array(stamp),
        "frame": np.array(frame, np.int64),
        "boxes": np.concatenate(boxes),
        "objects": np.array(objects, str),
        "names": np.array(names, str),
        "seen": np.array(seen, np.int64),
    }


def _networks_key(bundle: Bundle) -> str:
    """Of all that decides what the networks tell of a crop, and what is kept of it."""
    meta = bundle.meta
    kept = [each.name for each in fields(Views)]
    told = [meta.architecture, meta.normalisation, meta.input_size, meta.crop_margin, list(meta.trunks)]
    digest = hashlib.sha256(json.dumps([__version__, kept, QUALITIES, told], sort_keys=True).encode())
    for name in sorted(bundle.tensors):
        if name.startswith(("network.", "graph.", "basis.")):
            array = np.ascontiguousarray(bundle.tensors[name])
            digest.update(name.encode() + str((array.dtype, array.shape)).encode() + array.tobytes())
    return digest.hexdigest()[:16]
