"""A short record of every track and warning of a run, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lla_fusion_ros.report.tracks import reasons_of
from lla_fusion_ros.stream.frames import FusedFrame


@dataclass(slots=True)
class _Track:
    id: str
    first: int
    last: int = 0
    views: dict[str, int] = field(default_factory=dict)  # by camera
    top: int = 0
    probability: float = 0.0
    entropy: float = 0.0
    warned_views: int = 0
    warnings: list[dict[str, Any]] = field(default_factory=list)
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)  # by reason


class TrackTable:
    """A sink with one short record per track."""

    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = class_names
        self._tracks: dict[str, _Track] = {}

    def take(self, time: int, fused: FusedFrame) -> None:
        camera, stamp = fused.frame.camera, fused.frame.header.stamp
        for row, (name, reasons) in enumerate(zip(fused.result.ids, reasons_of(fused), strict=True)):
            track = self._tracks.setdefault(name, _Track(name, stamp))
            track.last = stamp
            track.views[camera] = track.views.get(camera, 0) + 1
            pmf = fused.result.pmf[row]
            track.top = int(pmf.argmax())
            track.probability = float(pmf[track.top])
            track.entropy = float(fused.result.verdicts.entropy[row])
            track.warned_views += bool(reasons)
            _follow(track, reasons, camera, stamp)

    def tracks(self) -> list[dict[str, Any]]:
        """Ready for JSON, in order of appearance; class, probability and entropy (nats) as last shown."""
        return [
            {
                "id": track.id,
                "views": track.views,
                "first": track.first / 1e9,
                "last": track.last / 1e9,
                "class": self._names[track.top],
                "probability": track.probability,
                "entropy": track.entropy,
                "warned_views": track.warned_views,
                "reasons": sorted({warning["reason"] for warning in track.warnings}),
            }
            for track in self._tracks.values()
        ]

    def warnings(self) -> list[dict[str, Any]]:
        """Every warning from its first view to its last, in time order."""
        every = [warning for track in self._tracks.values() for warning in track.warnings]
        return sorted(every, key=lambda warning: warning["first"])


def _follow(track: _Track, reasons: Sequence[str], camera: str, stamp: int) -> None:
    """A warning goes on while every view of the track has it."""
    for gone in set(track.standing) - set(reasons):
        del track.standing[gone]
    for reason in reasons:
        if reason not in track.standing:
            warning = {
                "track": track.id,
                "reason": reason,
                "camera": camera,
                "first": stamp / 1e9,
                "views": 0,
            }
            track.standing[reason] = warning
            track.warnings.append(warning)
        track.standing[reason]["last"] = stamp / 1e9
        track.standing[reason]["views"] += 1
