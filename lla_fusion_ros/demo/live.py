"""The state behind the live table: what each object looks like right now, from the recorder's lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import log

_SHOWN_FOR = 1.5  # seconds of message time after an object's last view


@dataclass
class LiveTrack:
    """One row of the table.

    Attributes:
        single: class and probability of the last single frame, by camera.
        fused: class and probability.
        entropy: of the fused distribution, normalised to 0..1.
        warning: reasons, or "" where there is none.
        changed: stamp at which its class changed, as such objects' classes do; 0: never.
    """

    id: str
    single: dict[str, tuple[int, float]] = field(default_factory=dict)
    fused: tuple[int, float] = (0, 0.0)
    entropy: float = 0.0
    warning: str = ""
    changed: int = 0
    stamp: int = 0
    views: int = 0


class LiveState:
    """Fed line by line; holds only what is in view and the totals."""

    def __init__(self) -> None:
        self.tracks: dict[str, LiveTrack] = {}
        self._object_of: dict[str, str] = {}  # of tracks that are one object with others
        self.stamp = 0
        self.first = 0
        self.rendered = 0  # frames, before any is fused
        self.fused_views = 0
        self.frames = 0
        self.warned: set[str] = set()
        self.changes = 0
        self.labels = False

    def take(self, line: str) -> None:
        """A line that is no JSON object is none of ours and is left alone."""
        try:
            told = json.loads(line)
            event = told["event"]
        except (ValueError, KeyError, TypeError):
            return
        if event == "labels":
            self.labels = True
        elif event == "views":
            for seen in told["tracks"]:
                name = self._object_of.get(seen["id"], seen["id"])
                self._track(name).single[told["camera"]] = seen["class"], seen["p"]
        elif event == "fused":
            self._fused(told)
        elif event == "states":
            for state in told["tracks"]:
                self._state(state, told["stamp"])
        elif event == "warnings":
            for warned in told["tracks"]:
                self._track(warned["id"]).warning = warned["reason"] if warned["level"] else ""
                if warned["level"]:
                    self.warned.add(warned["id"])

    def changed(self, track: LiveTrack) -> bool:
        """Whether its class changed a moment ago."""
        return track.changed > self.stamp - int(_SHOWN_FOR * 1e9)

    def in_view(self) -> list[LiveTrack]:
        """Objects seen a moment ago, by id, the first camera's first."""
        horizon = self.stamp - int(_SHOWN_FOR * 1e9)
        self.tracks = {name: track for name, track in self.tracks.items() if track.stamp >= horizon}
        fused = [track for track in self.tracks.values() if track.views]
        return sorted(fused, key=lambda track: [part.zfill(9) for part in track.id.split("/")])

    @property
    def seconds(self) -> float:
        return (self.stamp - self.first) / 1e9 if self.first else 0.0

    def _fused(self, told: dict) -> None:
        self.stamp = max(self.stamp, told["stamp"])
        self.first = self.first or told["stamp"]
        self.frames += 1
        for each in told["tracks"]:
            track = self._track(each["id"])
            track.fused = each["class"], each["p"]
            nats = -sum(p * log(p) for p in each["pmf"] if p > 0)
            track.entropy = nats / log(max(len(each["pmf"]), 2))
            track.stamp = told["stamp"]
            track.views += 1
            self.fused_views += 1

    def _state(self, told: dict, stamp: int) -> None:
        """Its tracks, which from now on are this object's, and whether its class changed."""
        self._object_of.pop(told["id"], None)  # it may have been another object's
        for member in told["members"]:
            if member != told["id"]:
                self._object_of[member] = told["id"]
                self.tracks.pop(member, None)
        if told["changed"]:
            self._track(told["id"]).changed = stamp
            self.changes += 1

    def _track(self, name: str) -> LiveTrack:
        return self.tracks.setdefault(name, LiveTrack(name, stamp=self.stamp))
