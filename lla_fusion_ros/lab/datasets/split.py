"""Splits by track: frames of one physical object never stand on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import Track, TrackSet

Item = TypeVar("Item")
_TRIALS = 5000  # ways to deal groups out


@dataclass(frozen=True, slots=True)
class Splits:
    """The parts of a data set.

    Attributes:
        train, validation, test: tracks of the known classes, whose labels count the known classes only.
        outside: every track of the held-out classes, label -1.
    """

    train: TrackSet
    validation: TrackSet
    test: TrackSet
    outside: TrackSet


def split_tracks(
    trackset: TrackSet,
    holdout: Sequence[int] = (),
    fractions: tuple[float, float, float] = (0.7, 0.15, 0.15),
    seed: int = 0,
    own_test: bool = False,
) -> Splits:
    """Shuffle the tracks of each class and deal them out by `fractions` (train, validation, test).

    Where tracks have a `group`, such as a site, whole groups are dealt out in their place.
    With `own_test` the test part that the data set comes with is the test, and the others are dealt out.

    Held-out classes leave the class list: the others keep their order and are numbered from 0 again. Every
    class is dealt out by itself, so that bundles with and without held-out classes share their tracks.
    """
    _check(trackset, holdout, fractions, own_test)
    known = [label for label in range(len(trackset.class_names)) if label not in set(holdout)]
    names = tuple(trackset.class_names[label] for label in known)
    parts: tuple[list[Track], list[Track], list[Track]] = ([], [], [])
    by_class: dict[int, list[Track]] = {label: [] for label in range(-1, len(trackset.class_names))}
    for track in trackset.tracks:
        by_class[track.label].append(track)
    grouped = _sides(trackset.tracks, known, fractions, seed)
    for number, label in enumerate(known):
        for track in by_class[label] if grouped else ():
            parts[grouped[track.group]].append(replace(track, label=number))
        if grouped:
            continue
        tests = [track for track in by_class[label] if own_test and track.part == "test"]
        parts[2].extend(replace(track, label=number) for track in tests)
        tracks = [track for track in by_class[label] if not (own_test and track.part == "test")]
        counts = _deal(len(tracks), fractions)
        # one stream per class: holding other classes out leaves this class's split as it is
        order = np.random.default_rng([seed, label]).permutation(len(tracks))
        start = 0
        for part, count in zip(parts, counts, strict=True):
            part.extend(replace(tracks[i], label=number) for i in sorted(order[start : start + count]))
            start += count
    outside = [replace(track, label=-1) for label in (-1, *sorted(set(holdout))) for track in by_class[label]]
    mirrored = tuple(
        known.index(other) if other in known else None
        for other in (trackset.mirrored[label] for label in known if trackset.mirrored)
    )
    whole = replace(trackset, class_names=names, mirrored=mirrored)
    return Splits(*(replace(whole, tracks=tuple(part)) for part in (*parts, outside)))


def _sides(
    tracks: Sequence[Track], known: Sequence[int], fractions: tuple[float, float, float], seed: int
) -> dict[str, int]:
    """The part of each group: 0 training, 1 validation, 2 test; empty where tracks have no groups.

    Of many random ways to deal the groups out, the one that comes nearest to the fractions while every class
    keeps half of its tracks for training, and is missing in validation and test as seldom as possible.
    """
    counts: dict[str, np.ndarray] = {}
    for track in tracks:
        if track.group and track.label in known:
            counts.setdefault(track.group, np.zeros(len(known)))[known.index(track.label)] += 1
    if not counts:
        return {}
    groups = sorted(counts)
    table = np.stack([counts[group] for group in groups])  # [groups, classes]
    total = table.sum(axis=0)
    rng = np.random.default_rng(seed)
    best, least = np.zeros(len(groups), int), np.inf
    for _ in range(_TRIALS):
        side = rng.choice(3, len(groups), p=fractions)
        shares = np.stack([table[side == part].sum(axis=0) for part in range(3)])  # [parts, classes]
        robbed = (shares[0] < total / 2).sum()
        absent = (shares[1:] == 0).sum() * (fractions[1] > 0)
        cost = np.abs(shares.sum(axis=1) / total.sum() - fractions).sum() + robbed + 0.02 * absent
        if cost < least:
            best, least = side, cost
    return dict(zip(groups, best.tolist(), strict=True))


def thinned(splits: Splits, train_images: int, tracks: int) -> Splits:
    """The same split with less in it: training tracks with fewer frames, at most `tracks` tracks elsewhere.

    Frames and tracks are picked evenly, so that every object stays in training and every class in proportion.
    """
    count = sum(len(track.frames) for track in splits.train.tracks)
    step = max(count / train_images, 1.0)
    frames = [
        replace(track, frames=_evenly(track.frames, max(round(len(track.frames) / step), 1)))
        for track in splits.train.tracks
    ]
    return Splits(
        replace(splits.train, tracks=tuple(frames)),
        *(
            replace(part, tracks=_evenly(part.tracks, tracks))
            for part in (splits.validation, splits.test, splits.outside)
        ),
    )


def _evenly(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    """At most `count` of them, evenly picked."""
    if len(items) <= count:
        return items
    return tuple(items[index * len(items) // count] for index in range(count))


def recorded_split(trackset: TrackSet, record: Mapping[str, Any]) -> Splits:
    """Split again as a bundle's record of its data set says (`meta.dataset`)."""
    splits = split_tracks(
        trackset,
        record["holdout"],
        tuple(record["fractions"]),
        record["split_seed"],
        record.get("own_test", False),
    )
    if not record.get("all_tracks"):
        return splits
    seen = splits.train.tracks + splits.validation.tracks + splits.test.tracks
    nothing = replace(splits.train, tracks=())
    return Splits(replace(splits.train, tracks=seen), nothing, nothing, splits.outside)


def _check(trackset: TrackSet, holdout: Sequence[int], fractions: Sequence[float], own_test: bool) -> None:
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise InputError(f"fractions {tuple(fractions)} must be three numbers >= 0 that sum to 1")
    if own_test and fractions[2] > 0:
        raise InputError(
            f"fractions {tuple(fractions)} ask for test tracks beside the data set's own; the third must be 0"
        )
    if own_test and not any(track.part == "test" for track in trackset.tracks):
        raise InputError(f"data set '{trackset.name}' comes without a test part of its own")
    classes = len(trackset.class_names)
    wrong = [label for label in holdout if not 0 <= label < classes]
    if wrong:
        raise InputError(f"holdout {wrong} are no classes of '{trackset.name}', which has 0 to {classes - 1}")
    if len(set(holdout)) >= classes:
        raise InputError(f"holdout leaves no class of '{trackset.name}' to train on")


def _deal(count: int, fractions: tuple[float, float, float]) -> list[int]:
    """How many of `count` tracks each part gets: rounded, but no wanted part stays empty if avoidable."""
    edges = np.rint(np.cumsum([0.0, *fractions]) * count).astype(int)
    counts = list(np.diff(edges))
    for part in (i for i in (0, 2, 1) if fractions[i] > 0 and counts[i] == 0):
        richest = int(np.argmax(counts))
        if counts[richest] > 1:
            counts[richest] -= 1
            counts[part] += 1
    return [int(value) for value in counts]
