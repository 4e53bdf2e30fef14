"""The whole way from a data set to a bundle: split, train, calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.lab.calibration.assemble import (
    CalibrationOptions,
    Stage,
    Trained,
    calibrated_bundle,
    least_validation_tracks,
)
from lla_fusion_ros.lab.calibration.cross_fit import Part, all_tracks, left_out
from lla_fusion_ros.lab.calibration.network_calibration import TorchNetworks
from lla_fusion_ros.lab.datasets import Splits, TrackSet, split_tracks, thinned
from lla_fusion_ros.lab.training.data import training_data
from lla_fusion_ros.lab.training.train import (
    CheckpointFolder,
    Progress,
    Report,
    for_classes,
    train_ensemble,
)
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.networks import SplitNetwork, build_network
from lla_fusion_ros.types.errors import InputError

QUICK_IMAGES = 2500  # for training
QUICK_TRACKS = 40  # for validation, and as many for the test


class Divided(Protocol):
    """What a recipe says of the data set: see `Recipe`."""

    @property
    def calibration(self) -> CalibrationOptions: ...

    @property
    def holdout(self) -> tuple[int, ...]: ...

    @property
    def fractions(self) -> tuple[float, float, float]: ...

    @property
    def split_seed(self) -> int: ...

    @property
    def own_test(self) -> bool: ...

    @property
    def quick(self) -> bool: ...

    @property
    def data_options(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what comes out.

    Attributes:
        holdout: classes left out of training, as the outside world.
        fractions, split_seed: of the split by track into training, validation and test.
        own_test: test on the test part that the data set comes with; `fractions` share out the rest.
        all_tracks: train on every track; validation and test tracks are left out in turn for networks that
            only calibrate, so that the data is trained on three times.
        start: a bundle to begin from; with 0 epochs only the calibration is done again.
        teacher: a bundle whose networks' answers are learnt as well as the labels.
        quick: train and calibrate on a small part of the split, for a first bundle in a minute or two.
        half: store network weights in 16 bits.
        plugins: Python modules that register the architecture, for the record.
        data_options: what the data set was loaded with, for the record.
        command: the command line, for the record.
    """

    settings: TrainSettings
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    holdout: tuple[int, ...] = ()
    fractions: tuple[float, float, float] = (0.7, 0.15, 0.15)
    split_seed: int = 0
    own_test: bool = False
    all_tracks: bool = False
    start: Bundle | None = None
    teacher: Bundle | None = None
    quick: bool = False
    half: bool = False
    plugins: tuple[str, ...] = ()
    data_options: dict[str, Any] = field(default_factory=dict)
    command: str = ""


def split_for(recipe: Divided, tracks: TrackSet) -> Splits:
    """The parts that a recipe trains, calibrates and tests on; refuses what cannot be calibrated."""
    splits = split_tracks(tracks, recipe.holdout, recipe.fractions, recipe.split_seed, recipe.own_test)
    for name, part in (("training", splits.train), ("validation", splits.validation)):
        if not part.tracks:
            raise InputError(
                f"data set '{tracks.name}' has no {name} tracks with fractions {recipe.fractions}"
            )
    if recipe.quick:
        splits = thinned(splits, QUICK_IMAGES, QUICK_TRACKS)
    found, needed = len(splits.validation.tracks), least_validation_tracks(recipe.calibration)
    if found < needed:
        raise InputError(
            f"data set '{tracks.name}' has {found} validation tracks, calibration needs {needed}: give it "
            "more tracks, a larger second share in --fractions, or more --draws"
        )
    return splits


def run_recipe(
    recipe: Recipe,
    tracks: TrackSet,
    device: torch.device,
    checkpoints: Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    stage: Stage = lambda name, done, total: None,
) -> Bundle:
    """Train and calibrate; `report` hears of every training step, `stage` of the stages after it."""
    splits = split_for(recipe, tracks)
    runs = [Run(splits.train)]
    if recipe.all_tracks:
        runs = [*(Run(*each) for each in left_out(splits)), Run(all_tracks(splits).train)]
        splits = all_tracks(splits)
    networks = _trained(recipe, tracks, runs, device, checkpoints, resume, report)
    settings = recipe.settings
    trained = Trained(
        networks[-1],
        settings.architecture,
        settings.normalisation.as_dict(),
        settings.size,
        settings.margin,
        settings.prior_precision,
        {
            **settings.as_dict(),
            "quick": recipe.quick,
            "commands": _commands(recipe),
            "torch": torch.__version__,
        },
        plugins=recipe.plugins,
    )
    record = {**dataset_record(recipe, tracks, splits), "all_tracks": recipe.all_tracks}
    parts = [
        Part(own, run.train, run.unseen)
        for own, run in zip(networks, runs, strict=True)
        if run.unseen is not None
    ]
    return calibrated_bundle(trained, splits, record, recipe.calibration, stage, parts)


class Run(NamedTuple):
    """One training: what on, and the tracks that its networks calibrate, if they only do that."""

    train: TrackSet
    unseen: TrackSet | None = None


def _trained(
    recipe: Recipe,
    tracks: TrackSet,
    runs: Sequence[Run],
    device: torch.device,
    checkpoints: Path | None,
    resume: bool,
    report: Report | None,
) -> list[TorchNetworks]:
    """The networks of each run, all with the same settings and from the same start."""
    settings, classes = recipe.settings, runs[0].train.class_names
    start = _starting_networks(recipe, tracks, classes)
    teachers = _teachers(recipe, tracks, classes)
    split = (recipe.holdout, recipe.fractions, recipe.split_seed, recipe.own_test)
    told = f"{tracks.digest} {split}" + (" quick" if recipe.quick else "")
    crops = [sum(len(track.frames) for track in run.train.tracks) for run in runs]
    found = []
    for number, run in enumerate(runs):
        members = start
        if settings.epochs > 0:
            folder = None
            if checkpoints is not None:
                of_run = f" run {number}" if recipe.all_tracks else ""
                first = number * settings.members
                folder = CheckpointFolder(checkpoints, settings, told + of_run, first)
            data = training_data(run.train, settings, recipe.calibration.background)
            told_all = None if report is None else _over_all_runs(report, number, crops, settings.members)
            members = train_ensemble(
                data, len(classes), settings, device, folder, resume, told_all, start, teachers
            )
        assert members is not None
        found.append(TorchNetworks(members, settings.normalisation, recipe.half))
    return found


def _over_all_runs(report: Report, number: int, crops: Sequence[int], members: int) -> Report:
    """Tells the steps of one run as steps of all of them, which have so many crops each."""

    def told(step: Progress) -> None:
        per_crop = step.steps / crops[number]
        done, total = round(per_crop * sum(crops[:number])), round(per_crop * sum(crops))
        report(replace(step, member=step.member + number * members, step=step.step + done, steps=total))

    return told


def _starting_networks(
    recipe: Recipe, tracks: TrackSet, classes: tuple[str, ...]
) -> list[SplitNetwork] | None:
    if recipe.start is None:
        if recipe.settings.epochs == 0:
            raise InputError("0 epochs without a bundle to start from leaves nothing to calibrate")
        return None
    if recipe.settings.epochs == 0 and recipe.all_tracks:
        raise InputError("0 epochs train on no tracks: leave --all-tracks out, or train for a few epochs")
    _check_unseen(recipe, recipe.start, tracks)
    members = recipe.start.members()
    if recipe.settings.architecture != recipe.start.meta.architecture:
        raise InputError(
            f"the bundle to start from has architecture {recipe.start.meta.architecture}, "
            f"not {recipe.settings.architecture}"
        )
    if len(members) != recipe.settings.members:
        raise InputError(
            f"the bundle to start from has {len(members)} networks, {recipe.settings.members} are wanted"
        )
    if recipe.settings.epochs == 0 and recipe.start.class_names != classes:
        raise InputError(
            f"the bundle to calibrate has {recipe.start.classes} classes, the data set has {len(classes)} or "
            "others; train for a few epochs to teach it these"
        )
    return [for_classes(member, recipe.start.class_names, classes) for member in members]


def _teachers(recipe: Recipe, tracks: TrackSet, classes: tuple[str, ...]) -> list[SplitNetwork] | None:
    teacher, settings = recipe.teacher, recipe.settings
    if teacher is None:
        return None
    _check_unseen(recipe, teacher, tracks)
    wanted = settings.size, settings.margin, settings.normalisation, classes
    if (teacher.input_size, teacher.crop_margin, teacher.normalisation(), teacher.class_names) != wanted:
        raise InputError(
            "a teacher has to take the same crops (size, margin, colours) and know the same classes"
        )
    width = build_network(settings.architecture, len(classes)).head.in_features
    members = teacher.members()
    few = len(members) < settings.members
    if few or len(members) == settings.members and members[0].head.in_features != width:
        raise InputError(
            f"{settings.members} networks of width {width} need more teachers, or one of that width each; "
            f"'{teacher.source}' has {len(members)} of width {members[0].head.in_features}"
        )
    return members


def _check_unseen(recipe: Recipe, start: Bundle, tracks: TrackSet) -> None:
    """Refuses networks that have seen tracks which this recipe keeps aside."""
    made = start.meta.dataset
    if made.get("digest") != tracks.digest:
        return
    told = made.get("split_seed"), tuple(made.get("fractions", ())), made.get("own_test", False)
    if made.get("all_tracks") or told != (recipe.split_seed, recipe.fractions, recipe.own_test):
        raise InputError(
            f"the networks of '{start.source}' were trained on tracks that are kept aside here: start from a "
            "bundle of the same split (--split-seed, --fractions, --own-test), trained without --all-tracks"
        )


def _commands(recipe: Recipe) -> list[str]:
    """What was typed to get here, from the first training on; of calibrations alone only the last counts."""
    before = [bundle for bundle in (recipe.teacher, recipe.start) if bundle is not None]
    earlier = [command for bundle in before for command in bundle.meta.training.get("commands", [])]
    trained = dict.fromkeys(command for command in earlier if " --epochs 0 " not in f"{command} ")
    return [*trained, recipe.command]


def dataset_record(recipe: Divided, tracks: TrackSet, splits: Any) -> dict[str, Any]:
    return {
        "name": tracks.name,
        "digest": tracks.digest,
        "options": recipe.data_options,
        "split_seed": recipe.split_seed,
        "fractions": list(recipe.fractions),
        "own_test": recipe.own_test,
        "holdout": list(recipe.holdout),
        "tracks": {
            part: len(getattr(splits, part).tracks) for part in ("train", "validation", "test", "outside")
        },
    }
