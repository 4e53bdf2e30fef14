"""Which tracks a bundle is scored on, with labels in the order of its classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.lab.datasets import Track, TrackSet, recorded_split
from lla_fusion_ros.lab.datasets.strangers import STRANGERS
from lla_fusion_ros.types.errors import InputError

SPLITS = ("all", "test")


@dataclass(frozen=True, slots=True)
class Selection:
    """Tracks of classes the bundle knows, and tracks of none of them (label -1).

    Attributes:
        validation: what the bundle was calibrated on, where that is known.
    """

    inside: TrackSet
    outside: TrackSet
    validation: TrackSet | None = None


def select_tracks(bundle: Bundle, tracks: TrackSet, split: str) -> Selection:
    """`test`: the split recorded in the bundle, on the data it was trained on; `all`: every track."""
    if split not in SPLITS:
        raise InputError(f"split '{split}' is unknown, choose one of {', '.join(SPLITS)}")
    if split == "test":
        return _test_split(bundle, tracks)
    return relabelled(bundle, tracks)


def relabelled(bundle: Bundle, tracks: TrackSet) -> Selection:
    """Every track, its class found by name among the bundle's; the others are outside."""
    index = {name: label for label, name in enumerate(bundle.class_names)}
    inside: list[Track] = []
    outside: list[Track] = []
    for track in tracks.tracks:
        name = tracks.class_names[track.label] if track.label >= 0 else None
        label = -1 if name is None else index.get(name, -1)
        (inside if label >= 0 else outside).append(replace(track, label=label))
    if not inside:
        raise InputError(
            f"no class of data set '{tracks.name}' is among the {bundle.classes} of bundle '{bundle.source}' "
            f"('{bundle.class_names[0]}', ...); evaluate a bundle that was trained on such data"
        )
    return Selection(_named(bundle, tracks, inside), _named(bundle, tracks, outside))


def all_outside(bundle: Bundle, tracks: TrackSet) -> TrackSet:
    """Any data set as the outside world; tracks of classes the bundle knows, or like them, are left out."""
    unlike = set(tracks.class_names) - set(bundle.class_names)
    unlike &= STRANGERS.get((bundle.meta.dataset.get("name", ""), tracks.name), unlike)
    strangers = [
        replace(track, label=-1)
        for track in tracks.tracks
        if track.label < 0 or tracks.class_names[track.label] in unlike
    ]
    if not strangers:
        raise InputError(f"data set '{tracks.name}' holds nothing the bundle was not trained on")
    return _named(bundle, tracks, strangers)


def _named(bundle: Bundle, tracks: TrackSet, chosen: list[Track]) -> TrackSet:
    return replace(tracks, class_names=bundle.class_names, tracks=tuple(chosen))


def _test_split(bundle: Bundle, tracks: TrackSet) -> Selection:
    """Split again as training did; refuses other data, whose 'test' tracks may have been trained on."""
    made = bundle.meta.dataset
    if made.get("digest") != tracks.digest:
        raise InputError(
            f"bundle '{bundle.source}' was trained on other data than this '{tracks.name}', so its test "
            "split is not known here; use --split all for data it has never seen"
        )
    splits = recorded_split(tracks, made)
    if splits.test.class_names != bundle.class_names:
        raise InputError(
            f"bundle '{bundle.source}' does not list the classes of its own data set; train it again"
        )
    if not splits.test.tracks:
        raise InputError(
            f"bundle '{bundle.source}' was trained without keeping test tracks aside; "
            "use --split all for data it has never seen"
        )
    return Selection(splits.test, splits.outside, splits.validation)
