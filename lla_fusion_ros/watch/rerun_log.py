"""Recordings for the viewer Rerun: images, boxes, class distributions over time, warnings, cameras in space.

`cameras/NAME` is a camera, placed in space where that is known, with its image and boxes below it; `pmf/ID`,
`probability/ID` and `entropy/ID` are an object over time, `warnings` is a log. Time is that of the messages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import cv2
import numpy as np
import rerun
import rerun.blueprint as layout

from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.images.drawing import colour_of, to_bgr8
from lla_fusion_ros.messages.status import Status
from lla_fusion_ros.stream.frame_messages import warning_statuses
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.tracking.geometry import Geometry
from lla_fusion_ros.tracking.transforms import Pose
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import percent
from lla_fusion_ros.types.printable import escaped, printable

_QUALITY = 85  # of JPEG
_IMAGE_PLANE = 0.5  # metres before the camera at which its image hangs in space
_PLOTTED = 12  # objects with a plot of their own
_LEVELS = ("INFO", "WARN", "ERROR", "ERROR")


class RerunLog:
    """Writes to a file, or with None to a viewer that it opens; a context manager, and a sink of a replay.

    A file has its name only once it is complete; one that was there before stays until then.
    """

    def __init__(self, file: Path | None, title: str) -> None:
        self._file = file
        self._part = None if file is None else file.with_name(f".{file.name}.part")
        self._names: tuple[str, ...] = ()
        self._geometry: Geometry | None = None
        self._placed: dict[str, tuple[Any, ...]] = {}  # camera -> what was last said of its place
        self._cameras: list[str] = []
        self._objects: dict[str, list[int]] = {}  # id -> level of its worst warning, number of views
        self._stream = rerun.RecordingStream("lla_fusion", recording_id=None)
        try:
            if self._part is None:
                self._stream.spawn(default_blueprint=self._layout())
            else:
                self._stream.save(self._part)
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"Rerun cannot {'open its viewer' if file is None else 'write'}: {error}"
            ) from None
        self._stream.send_recording_name(printable(title))

    def __enter__(self) -> RerunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.send_blueprint(self._layout())
        self._stream.flush()
        self._stream.disconnect()
        if self._part is not None and self._file is not None:
            if kind is None:
                os.replace(self._part, self._file)
            else:
                self._part.unlink(missing_ok=True)

    def begin(self, geometry: Geometry, class_names: Sequence[str]) -> None:
        """Where the cameras are, and what classes are called, from now on."""
        self._geometry, self._names = geometry, tuple(class_names)

    def take(self, time: int, fused: FusedFrame) -> None:
        """A fused frame."""
        frame, result = fused.frame, fused.result
        camera, stamp = frame.camera, frame.header.stamp
        if frame.pixels is not None:
            self.image(camera, stamp, frame.pixels)
        bbox = frame.bbox[result.kept][:, [0, 1, 3, 4]]
        warned = [bool(verdict.reasons) for verdict in result.verdicts]
        self.boxes(camera, stamp, bbox, result.ids, result.pmf, warned, self._names)
        for name, pmf in zip(result.ids, result.pmf, strict=True):
            self.fused(stamp, name, pmf, self._names)
        self.warnings(stamp, warning_statuses(fused, self._names))

    def image(self, camera: str, stamp: int, image: Pixels | bytes, kind: str = "image/jpeg") -> None:
        """Decoded, or the bytes of a compressed one."""
        self._at(stamp)
        self._place(camera, stamp)
        if isinstance(image, Pixels):
            quality = [cv2.IMWRITE_JPEG_QUALITY, _QUALITY]
            image = np.asarray(cv2.imencode(".jpg", to_bgr8(image), quality)[1]).tobytes()
        self._stream.log(self._below(camera, "image"), rerun.EncodedImage(contents=image, media_type=kind))

    def boxes(
        self,
        camera: str,
        stamp: int,
        boxes: np.ndarray,
        ids: Sequence[str],
        pmf: np.ndarray,
        warned: Sequence[bool],
        class_names: Sequence[str],
    ) -> None:
        """Of all objects of a frame.  boxes [n, 4] cx, cy, w, h; pmf [n, classes]"""
        self._at(stamp)
        tops, surest = pmf.argmax(axis=1), pmf.max(axis=1)
        labels = [
            printable(f"{name}: {class_names[top]} {percent(p)}{' !' * bad}")
            for name, top, p, bad in zip(ids, tops, surest, warned, strict=True)
        ]
        colours = [colour_of(float(p), bad)[::-1] for p, bad in zip(surest, warned, strict=True)]
        drawn = rerun.Boxes2D(centers=boxes[:, :2], sizes=boxes[:, 2:], labels=labels, colors=colours)
        self._stream.log(self._below(camera, "image", "objects"), drawn)

    def fused(self, stamp: int, name: str, pmf: np.ndarray, class_names: Sequence[str]) -> None:
        """The fused distribution of one object.  pmf [classes]"""
        self._at(stamp)
        part = escaped(name)
        if name not in self._objects:
            names = [printable(each) for each in class_names]
            self._stream.log(["pmf", part], rerun.SeriesLines(names=names), static=True)
            self._objects[name] = [0, 0]
        self._objects[name][1] += 1
        entropy = float(-(pmf[pmf > 0] * np.log(pmf[pmf > 0])).sum())
        self._stream.log(["pmf", part], rerun.Scalars(pmf))
        self._stream.log(["probability", part], rerun.Scalars(float(pmf.max())))
        self._stream.log(["entropy", part], rerun.Scalars(entropy))

    def warnings(self, stamp: int, statuses: Sequence[Status]) -> None:
        """Those of a frame; one at level OK says that a warning has ended."""
        self._at(stamp)
        for status in statuses:
            known = self._objects.get(status.name.removeprefix("track "))
            if known is not None:
                known[0] = max(known[0], status.level)
            told = printable(f"{status.name}: {status.message}")
            level = _LEVELS[min(max(status.level, 0), 3)]
            self._stream.log("warnings", rerun.TextLog(told, level=level))

    def _at(self, stamp: int) -> None:
        self._stream.set_time("stamp", timestamp=np.datetime64(stamp, "ns"))

    def _below(self, camera: str, *parts: str) -> list[object]:
        return ["cameras", escaped(camera), *parts]

    def _place(self, camera: str, stamp: int) -> None:
        """Lens and place of a camera where they are known and have changed."""
        if camera not in self._cameras:
            self._cameras.append(camera)
        if self._geometry is None or (lens := self._geometry.lens(camera)) is None:
            return
        pose = self._geometry.place(camera, stamp)
        if pose is None:
            return
        now = lens, pose.rotation.tobytes(), pose.place.tobytes()
        if self._placed.get(camera) == now:
            return
        self._placed[camera] = now
        self._stream.log(self._below(camera), _transform(pose))
        matrix = np.array(lens.matrix).reshape(3, 3)
        pinhole = rerun.Pinhole(
            image_from_camera=matrix,
            resolution=[lens.width, lens.height],
            camera_xyz=rerun.ViewCoordinates.RDF,
            image_plane_distance=_IMAGE_PLANE,
        )
        self._stream.log(self._below(camera, "image"), pinhole)

    def _layout(self) -> layout.Blueprint:
        """What the viewer shows first: the cameras, what is known of the objects, the warnings."""
        views: list[Any] = [
            layout.Spatial2DView(origin=_path(self._below(camera, "image")), name=printable(camera))
            for camera in self._cameras
        ]
        if self._placed:
            views.append(layout.Spatial3DView(origin="/cameras", name="cameras in space"))
        worst_first = sorted(self._objects, key=lambda name: self._objects[name], reverse=True)[:_PLOTTED]
        plots: list[Any] = [
            layout.TimeSeriesView(origin="/probability", name="probability of the shown class"),
            layout.TimeSeriesView(origin="/entropy", name="entropy"),
            *(
                layout.TimeSeriesView(origin=_path(["pmf", escaped(name)]), name=printable(name))
                for name in worst_first
            ),
        ]
        log = layout.TextLogView(origin="/warnings", name="warnings")
        top = layout.Grid(*views) if views else layout.Spatial2DView(origin="/cameras", name="cameras")
        return layout.Blueprint(layout.Vertical(top, layout.Horizontal(layout.Tabs(*plots), log)))


def _path(parts: Sequence[object]) -> str:
    return rerun.new_entity_path([str(part) for part in parts])


def _transform(pose: Pose) -> Any:
    return rerun.Transform3D(translation=pose.place, mat3x3=pose.rotation)
