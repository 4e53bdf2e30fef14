"""From pairs of tracks that are one object to groups of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

MOST_MEMBERS = 12

Groups = Mapping[str, tuple[str, ...]]


@dataclass
class Track:
    """Of one camera; `slot` is its place in the matrices of pairs."""

    name: str
    camera: int
    slot: int
    first: int
    last: int


def grouped(joined: np.ndarray, score: np.ndarray, among: Collection[Track]) -> Groups:
    """Tracks that are one object; a group has at most one track of a camera at a time."""
    edges = np.stack(np.nonzero(joined))
    edges = edges[:, np.argsort(-score[tuple(edges)], kind="stable")]
    tracks = {track.slot: track for track in among}
    group = {slot: [tracks[slot]] for slot in set(edges.ravel().tolist())}
    for first, second in edges.T.tolist():
        mine, other = group[first], group[second]
        if mine is other or len(mine) + len(other) > MOST_MEMBERS:
            continue
        if all(_apart(a, b) for a in mine for b in other):
            mine += other
            for track in other:
                group[track.slot] = mine
    named: dict[str, tuple[str, ...]] = {}
    for members in group.values():
        if members[0].name not in named and len(members) > 1:
            members.sort(key=lambda track: (track.first, track.name))
            names = tuple(track.name for track in members)
            named.update(dict.fromkeys(names, names))
    return named


def _apart(a: Track, b: Track) -> bool:
    """Whether two tracks may be one object: of two cameras, or of one camera one after the other."""
    return a.camera != b.camera or a.last < b.first or b.last < a.first
