"""What `watch --rerun` hears on top of `watch`: whole distributions, boxes, images, where the cameras are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import Detections, parse_detections
from lla_fusion_ros.messages.geometry import parse_camera_info, parse_transforms
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.messages.status import parse_diagnostics, parse_label_info
from lla_fusion_ros.tracking.geometry import Geometry
from lla_fusion_ros.watch.rerun_log import RerunLog
from lla_fusion_ros.watch.scene import Scene, camera_name

Listen = Callable[[str, str, Callable[[bytes], None], bool], None]  # topic, type, taker, latched
_MEDIA = {b"\xff\xd8": "image/jpeg", b"\x89P": "image/png"}


class RerunFeed:
    """Feeds a recording from the graph; `look` is called again and again as topics appear."""

    def __init__(self, log: RerunLog, scene: Scene) -> None:
        self._log, self._scene = log, scene
        self._geometry = Geometry(())
        self._labels: dict[str, tuple[str, ...]] = {}  # by source
        self._warned: dict[tuple[str, str], int] = {}  # levels
        self._topics: dict[str, dict[str, str]] = {}  # by camera: of its image and camera_info
        log.begin(self._geometry, ())

    def look(self, sources: Sequence[str], published: dict[str, str], listen: Listen) -> None:
        """Listen to what is new."""
        for source in sources:
            labels = f"{source}/{contract.LABELS}"
            if labels in published:
                listen(labels, contract.LABEL_INFO, partial(self._names, source), True)
            listen(
                f"{source}/{contract.OOD_WARNINGS}",
                contract.DIAGNOSTICS,
                partial(self._warnings, source),
                False,
            )
            fused = f"{source}/{contract.FUSED_CLASSES}"
            listen(fused, contract.DETECTIONS, partial(self._objects, source), False)
            for name, kind in published.items():
                below = name.startswith(f"{source}/") and name.endswith(f"/{contract.FUSED_CLASSES}")
                if kind == contract.DETECTIONS and below and name != fused:
                    camera = name[len(source) + 1 :].removesuffix(f"/{contract.FUSED_CLASSES}")
                    listen(name, kind, partial(self._boxes, source, camera), False)
        if sources:
            listen(contract.NODE_DIAGNOSTICS, contract.DIAGNOSTICS, self._diagnostics, False)
        for camera, topics in self._topics.items():
            for topic, take in (
                (topics["image topic"], self._image),
                (topics["camera_info topic"], self._info),
            ):
                if topic in published:
                    listen(topic, published[topic], partial(take, camera), False)
        for topic in (contract.TRANSFORMS, contract.STATIC_TRANSFORMS):
            if published.get(topic) == contract.TRANSFORMS_TYPE:
                fixed = topic == contract.STATIC_TRANSFORMS
                listen(topic, contract.TRANSFORMS_TYPE, partial(self._transforms, fixed), fixed)

    def _names(self, source: str, raw: bytes) -> None:
        self._labels[source] = tuple(parse_label_info(raw))

    def _objects(self, source: str, raw: bytes) -> None:
        found = parse_detections(raw, with_scores=True)
        if names := self._labels.get(source):
            for name, pmf in zip(found.ids, _pmf(found, names), strict=True):
                self._log.fused(found.header.stamp, camera_name(source, name), pmf, names)

    def _boxes(self, source: str, camera: str, raw: bytes) -> None:
        found = parse_detections(raw, with_scores=True)
        names = self._labels.get(source)
        if names and len(found.ids):
            ids = [self._scene.object_of(source, f"{camera}/{name}", name) for name in found.ids]
            warned = [bool(self._warned.get((source, name))) for name in ids]
            boxes, pmf = found.bbox[:, [0, 1, 3, 4]], _pmf(found, names)
            self._log.boxes(camera_name(source, camera), found.header.stamp, boxes, ids, pmf, warned, names)

    def _warnings(self, source: str, raw: bytes) -> None:
        header, statuses = parse_diagnostics(raw)
        for status in statuses:
            self._warned[source, status.name.removeprefix("track ")] = status.level
        self._log.warnings(header.stamp, statuses)

    def _diagnostics(self, raw: bytes) -> None:
        """How each camera is wired."""
        for status in parse_diagnostics(raw)[1]:
            node, ours, camera = status.name.partition(": camera ")
            topics = {name: status.values.get(name, "") for name in ("image topic", "camera_info topic")}
            if ours and topics["image topic"]:
                camera = camera_name(node.rpartition("/")[0], camera)
                self._topics[camera] = topics
                if camera not in self._geometry.cameras:
                    self._geometry.cameras += (camera,)

    def _image(self, camera: str, raw: bytes) -> None:
        if self._topics[camera]["image topic"].endswith("/compressed"):
            packed = parse_compressed_image(raw)
            data = bytes(packed.data)
            kind = _MEDIA.get(data[:2])
            image = packed.pixels() if kind is None else data
            self._log.image(camera, packed.header.stamp, image, kind or "image/jpeg")
        else:
            message = parse_image(raw)
            self._log.image(camera, message.header.stamp, message.pixels())

    def _info(self, camera: str, raw: bytes) -> None:
        rectified = contract.is_rectified(self._topics[camera]["image topic"])
        self._geometry.take_info(camera, parse_camera_info(raw), rectified)

    def _transforms(self, fixed: bool, raw: bytes) -> None:
        self._geometry.take_transforms(parse_transforms(raw), fixed)


def _pmf(found: Detections, names: Sequence[str]) -> np.ndarray:
    """As far as it is listed.  [detections, classes]"""
    numbers = {**{str(index): index for index in range(len(names))}, **{n: i for i, n in enumerate(names)}}
    pmf = np.zeros((len(found.ids), len(names)))
    for row, scores in enumerate(found.scores):
        for class_id, p in scores:
            if class_id in numbers and np.isfinite(p):
                pmf[row, numbers[class_id]] = p
    return pmf
