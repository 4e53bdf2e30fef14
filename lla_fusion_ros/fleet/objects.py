"""One record per object of a bag, and a picture of the oddest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from lla_fusion_ros.images.crops import cut_crops
from lla_fusion_ros.replay.sinks import writing
from lla_fusion_ros.report.tracks import reasons_of
from lla_fusion_ros.report.truth import OUTSIDE, UNSAID, Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.types.metrics import ECE_BINS, LOWEST_PROBABILITY
from lla_fusion_ros.types.pmf import among_named
from lla_fusion_ros.types.printable import escaped
from lla_fusion_ros.warnings.result import CANNOT_TELL, NOTHING_THERE, P_VALUE_NAMES, TESTED

MOST_PICTURES = 8  # of a bag
_MOST_KEPT = 64  # pictures in memory: of objects that may still turn out to be the oddest
_SIDE, _MARGIN, _QUALITY = 112, 0.15, 82
_MILD = (CANNOT_TELL, NOTHING_THERE)  # reasons that make no object odd
_ODD = [index for index, reason in enumerate(TESTED) if reason not in _MILD]
_LARGER = 1.3  # times the side of the box in the picture at hand, for another one


@dataclass(slots=True)
class _Object:
    first: int
    last: int = 0
    cameras: dict[str, int] = field(default_factory=dict)
    views: int = 0
    top: int = -1
    single: int = -1
    pmf: np.ndarray = field(default_factory=lambda: np.zeros(0))
    entropy: float = 0.0
    changes: int = 0
    last_change: int = 0
    view_changes: int = 0
    warned_views: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    ood_score: float = -np.inf
    p_values: np.ndarray = field(default_factory=lambda: np.ones(len(P_VALUE_NAMES)))  # the least so far
    labels: list[int] = field(default_factory=list)  # one after the other, without repeats
    truth_views: int = 0
    hits: int = 0
    loss: float = 0.0
    right: bool | None = None

    @property
    def oddness(self) -> float:
        """From 0 to 1: one minus the least p-value; an object that was warned of is odder than all others.

        Bad pictures, or that nothing is there, do not make an object odd.
        """
        warned = any(reason not in _MILD for reason in self.reasons)
        return float(1 - self.p_values[_ODD].min()) / 2 + (0.5 if warned else 0.0)


@dataclass(slots=True)
class _Picture:
    side: float
    jpeg: bytes


class ObjectTable:
    """A sink. Its memory grows with the number of objects, not with that of frames.

    Args:
        min_views: p-values of fewer views do not count.
        reserved: so many of the last classes are no kinds of objects, and not scored.
    """

    def __init__(
        self, bag: str, class_names: tuple[str, ...], truth: Truth | None, min_views: int, reserved: int = 0
    ) -> None:
        self._bag, self._truth, self._min_views, self._reserved = bag, truth, min_views, reserved
        self._names = list(map(escaped, class_names))
        self._numbers = {name: index for index, name in enumerate(class_names)}
        self._objects: dict[str, _Object] = {}
        self._pictures: dict[str, _Picture] = {}
        self.bins = np.zeros((ECE_BINS, 3))  # views, sum of their confidences, how many are right

    def take(self, time: int, fused: FusedFrame) -> None:
        frame, result = fused.frame, fused.result
        stamp, verdicts = frame.header.stamp, result.verdicts
        singles = view_pmf(frame)[result.kept].argmax(axis=1).tolist()
        tops = result.pmf.argmax(axis=1).tolist()
        seen = verdicts.views.sum(axis=1)
        labels = None if self._truth is None else self._truth.judge(frame).labels(self._numbers)[result.kept]
        for row, (name, reasons) in enumerate(zip(result.ids, reasons_of(fused), strict=True)):
            own = self._objects.setdefault(name, _Object(stamp))
            own.last = stamp
            own.cameras[frame.camera] = own.cameras.get(frame.camera, 0) + 1
            if own.views:
                own.view_changes += singles[row] != own.single
                if tops[row] != own.top:
                    own.changes, own.last_change = own.changes + 1, own.views + 1
            own.views += 1
            own.top, own.single = tops[row], singles[row]
            own.pmf, own.entropy = result.pmf[row].astype(np.float32), float(verdicts.entropy[row])
            own.ood_score = max(own.ood_score, float(verdicts.ood_score[row]))
            if seen[row] >= self._min_views:
                np.minimum(own.p_values, verdicts.p_values[row], out=own.p_values)
            own.warned_views += bool(reasons)
            for reason in reasons:
                own.reasons[reason] = own.reasons.get(reason, 0) + 1
            if labels is not None and labels[row] != UNSAID:
                self._score(own, int(labels[row]))
        if frame.pixels is not None:
            self._picture(frame, result.kept, result.ids)

    def _score(self, own: _Object, label: int) -> None:
        if not own.labels or own.labels[-1] != label:
            own.labels.append(label)
        if label == OUTSIDE:
            return
        pmf = among_named(own.pmf, self._reserved)
        own.right = int(pmf.argmax()) == label
        own.truth_views += 1
        own.hits += own.right
        own.loss -= float(np.log(max(pmf[label], LOWEST_PROBABILITY)))
        confidence = float(pmf.max())
        self.bins[min(int(confidence * ECE_BINS), ECE_BINS - 1)] += 1, confidence, own.right

    def _picture(self, frame: ViewFrame, kept: np.ndarray, ids: Sequence[str]) -> None:
        """Keep the largest view so far of the objects that are oddest so far."""
        assert frame.pixels is not None
        for row, name in zip(kept, ids, strict=True):
            box = frame.bbox[row][[0, 1, 3, 4]]
            side = float(np.sqrt(box[2] * box[3]))
            old = self._pictures.get(name)
            if old is not None and side < _LARGER * old.side:
                continue
            if old is None and len(self._pictures) >= _MOST_KEPT:
                dullest = min(self._pictures, key=lambda each: self._objects[each].oddness)
                if self._objects[name].oddness <= self._objects[dullest].oddness:
                    continue
                del self._pictures[dullest]
            crop = cut_crops(frame.pixels, box[None], _SIDE, _MARGIN)[0]
            bgr = np.ascontiguousarray(crop[..., ::-1])
            jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1].tobytes()
            self._pictures[name] = _Picture(side, jpeg)

    def write_pictures(self, folder: Path) -> dict[str, str]:
        """File names by object, of the oddest objects."""
        odd = sorted(self._pictures, key=lambda name: (-self._objects[name].oddness, name))[:MOST_PICTURES]
        names = {name: f"{number}.jpg" for number, name in enumerate(odd, start=1)}
        with writing(folder):
            folder.mkdir(exist_ok=True)
            for name, file in names.items():
                (folder / file).write_bytes(self._pictures[name].jpeg)
        return names

    def rows(self, pictures: dict[str, str]) -> list[dict[str, Any]]:
        """Ready for `tables.OBJECT_COLUMNS`, in order of appearance."""
        return [
            {
                "bag": self._bag,
                "object": escaped(name),
                "cameras": sorted(map(escaped, own.cameras)),
                "first": own.first,
                "last": own.last,
                "views": own.views,
                "fused_class": self._names[own.top],
                "fused_p": float(own.pmf[own.top]),
                "entropy": own.entropy,
                "pmf": own.pmf.tolist(),
                "changes": own.changes,
                "last_change": own.last_change,
                "view_changes": own.view_changes,
                "warned_views": own.warned_views,
                "reasons": sorted(own.reasons),
                "ood_score": own.ood_score,
                **dict(zip(P_VALUE_NAMES, own.p_values.tolist(), strict=True)),
                "oddness": own.oddness,
                "picture": pictures.get(name),
                **self._truth_of(own),
            }
            for name, own in self._objects.items()
        ]

    def _truth_of(self, own: _Object) -> dict[str, Any]:
        if not own.labels:
            return {}
        last, views = own.labels[-1], own.truth_views
        return {
            "truth": None if last == OUTSIDE else self._names[last],
            "outside": OUTSIDE in own.labels,
            "switched": len(own.labels) > 1,
            "truth_views": views,
            "accuracy": own.hits / views if views else None,
            "nll": own.loss / views if views else None,
            "right": own.right,
        }
