"""What was loaded for a training run, and what to be careful about, in sentences."""

from __future__ import annotations

from collections import Counter

from lla_fusion_ros.datasets import Splits, TrackSet
from lla_fusion_ros.training.settings import TrainSettings

FEW_TRACKS = 5  # of a class: one of training, validation and test then has hardly any
FEW_TO_CALIBRATE = 50  # validation tracks below which rates and thresholds are rough
UNEVEN = 10  # times as many crops as the rarest class
_NAMED = 5  # classes in a sentence


def summary(tracks: TrackSet, splits: Splits) -> list[str]:
    """Classes, tracks, split and imbalance."""
    names = splits.train.class_names
    known = _tracks_of(tracks)
    most, least = (pick(names, key=lambda name: known[name]) for pick in (max, min))
    parts = [
        f"{name} {len(part.tracks)} tracks ({_crops(part)} images)"
        for name, part in (
            ("training", splits.train),
            ("validation", splits.validation),
            ("test", splits.test),
            ("held out", splits.outside),
        )
        if part.tracks or name != "held out"
    ]
    return [
        f"{tracks.name}: {len(names)} classes, {len(tracks.tracks)} tracks, {_crops(tracks)} images",
        ", ".join(parts),
        f"{known[least]} tracks of every class"
        if known[least] == known[most]
        else f"tracks of a class: {known[least]} ('{least}') to {known[most]} ('{most}')",
    ]


def cautions(tracks: TrackSet, splits: Splits, settings: TrainSettings) -> list[str]:
    """What makes the bundle weaker than it looks, each with what helps."""
    said = []
    names = splits.train.class_names
    counts = _tracks_of(tracks)
    few = [name for name in names if counts[name] < FEW_TRACKS]
    if few:
        shown = ", ".join(f"'{name}' {counts[name]}" for name in few[:_NAMED])
        more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
        said.append(
            f"{len(few)} of {len(names)} classes have fewer than {FEW_TRACKS} tracks ({shown}{more}): "
            "what is learnt and measured of them rests on one or two objects"
        )
    missing = [name for label, name in enumerate(names) if not _has(splits.train, label)]
    if missing:
        said.append(f"no training track of class {_quoted(missing)}: it will never be recognised")
    if len(splits.validation.tracks) < FEW_TO_CALIBRATE:
        said.append(
            f"calibration rests on {len(splits.validation.tracks)} validation tracks: false-alarm rates, the "
            f"choice of the fuser and its numbers are rough below {FEW_TO_CALIBRATE}; --fractions gives more"
        )
    crops = Counter[int]()
    for track in splits.train.tracks:
        crops[track.label] += len(track.frames)
    if crops and max(crops.values()) >= UNEVEN * min(crops.values()) and settings.balance == 0:
        times = max(crops.values()) / min(crops.values())
        said.append(
            f"the largest class has {times:.0f} times the training images of the smallest; --balance 0.5 "
            "shows rare classes more often"
        )
    longest = max(len(track.frames) for track in tracks.tracks)
    if longest == 1:
        said.append("every track is one image: the fusers of several views are neither fitted nor measured")
    alone = [name for name in names if counts[name] == 1 and longest > 1]
    if alone:
        said.append(
            f"class {_quoted(alone)} is a single track; where its images show different objects, say "
            "--layout images"
        )
    if sum(crops.values()) < settings.batch and settings.epochs > 0:
        said.append(
            f"{sum(crops.values())} training images are fewer than one batch of {settings.batch}: smaller "
            "batches are taken; --start from a trained bundle or more --epochs help"
        )
    return said


def _tracks_of(tracks: TrackSet) -> Counter[str]:
    """How many tracks each class has."""
    return Counter(tracks.class_names[track.label] for track in tracks.tracks if track.label >= 0)


def _crops(part: TrackSet) -> int:
    return sum(len(track.frames) for track in part.tracks)


def _has(part: TrackSet, label: int) -> bool:
    return any(track.label == label for track in part.tracks)


def _quoted(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
