"""`lla-fusion train`: a data set in, a bundle out."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.cli.options import (
    STDOUT,
    Arguments,
    add_data_arguments,
    add_json_option,
    options_of,
    tell_skipped,
    write_json,
)
from lla_fusion_ros.cli.words import check_file, check_folder, numbers, shares, words

if TYPE_CHECKING:
    from lla_fusion_ros.cli.training_progress import TrainingProgress
    from lla_fusion_ros.lab.datasets import TrackSet
    from lla_fusion_ros.lab.training.recipe import Recipe

NAME = "train"
# What --quick changes, where the user does not say otherwise.
USUAL = {"members": 5, "epochs": 20, "draws": 2, "outlier_tracks": 360}
QUICK = {"members": 2, "epochs": 5, "draws": 1, "outlier_tracks": 60}
QUICK_CANDIDATES = ("evidence_pool", "pool")
STEMS = ("stride", "pool")
AS_NAMED = (  # settings that the options are called after
    "batch", "learning_rate", "label_smoothing", "balance", "share", "averaging", "clean", "hard", "faded",
    "relit", "coded", "outliers", "repulsion", "seed",
)  # fmt: skip
EXTRA = "lab"
HELP = "train an ensemble on a data set, fit its posterior, calibrate everything, write a bundle"
EXAMPLE = """\
lla-fusion train --dataset folders --root crops --quick --out first.safetensors
lla-fusion train --dataset signworld --members 5 --out my_signs.safetensors
lla-fusion train --dataset gtsrb --root data/GTSRB --size 40 --epochs 20 --out gtsrb.safetensors
lla-fusion train --dataset gtsrb --root data/GTSRB --size 40 --epochs 20 --out gtsrb.safetensors --resume
lla-fusion train --dataset folders --root crops --start models/gtsrb.safetensors --epochs 5 --out a.bundle
lla-fusion train --dataset folders --root crops --start a.bundle --epochs 0 --out b.bundle"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    add_split_arguments(data)
    data.add_argument(
        "--changing",
        metavar="NAMES",
        help="classes that change into each other under one id, such as 'red light,green light'",
    )
    network = parser.add_argument_group("networks")
    network.add_argument(
        "--network",
        default="road",
        help="architecture: road, lenet, alexnet, dense or your own (%(default)s)",
    )
    network.add_argument("--size", type=int, help="side of the crops in pixels (32, or that of --start)")
    network.add_argument("--channels", help="channels of a road network (24,48,96,96)")
    network.add_argument(
        "--stem",
        choices=STEMS,
        help="how the first layer of a road network halves the image: in steps of two pixels, or by pooling, "
        "which keeps finer detail and takes a little longer (stride)",
    )
    network.add_argument("--width", type=int, help="features of the last hidden layer")
    network.add_argument(
        "--margin", type=float, default=0.1, help="boxes are grown by this much (%(default)s)"
    )
    network.add_argument("--members", type=int, help="number of networks (5; with --quick 2)")
    network.add_argument("--start", metavar="BUNDLE", help="begin from the networks of this bundle")
    network.add_argument(
        "--shared",
        type=int,
        default=0,
        metavar="N",
        help="all networks share their first N convolutions, and cost little more than one (%(default)s)",
    )
    how = parser.add_argument_group("training")
    how.add_argument(
        "--quick",
        action="store_true",
        help="a first bundle in a minute or two, to try everything with: fewer networks, images and epochs",
    )
    how.add_argument(
        "--all-tracks",
        action="store_true",
        help="train on every track and keep none aside; two more ensembles, without the validation and "
        "without the test tracks, are trained to calibrate on what they have not seen",
    )
    how.add_argument("--epochs", type=int, help="0 with --start: only calibrate (20; with --quick 5)")
    how.add_argument("--batch", type=int, default=128, help="crops per step (%(default)s)")
    for name, default, meaning in (
        ("--learning-rate", 3e-3, "largest rate of Adam"),
        ("--prior", 1.0, "precision of the L2 prior"),
        ("--label-smoothing", 0.0, "share of the target spread over all classes"),
        ("--balance", 0.0, "1 shows rare classes as often as others"),
        ("--share", 1.0, "share of the crops that an epoch shows"),
        ("--averaging", 0.995, "decay of the weight average"),
        ("--clean", 0.4, "share of clean crops"),
        ("--hard", 0.3, "share of hard crops; the rest is mixed"),
        ("--faded", 0.0, "share of crops with faded colours"),
        ("--relit", 0.0, "share of crops with other contrasts and surroundings"),
        ("--coded", 0.0, "share of crops as other cameras send them: JPEG, other colours, another side"),
        ("--outliers", 0.15, "share of synthetic outliers"),
        ("--repulsion", 0.0, "push members apart by this much"),
    ):
        how.add_argument(name, type=float, default=default, help=f"{meaning} (%(default)s)")
    how.add_argument(
        "--background",
        metavar="DIR",
        nargs="?",
        const="",
        help="networks learn what is no object: drawn scenery, and natural images without objects of these "
        "classes below DIR, where it is named; warnings are fitted against them, too",
    )
    how.add_argument(
        "--teacher",
        metavar="BUNDLE",
        help="learn the answers of these networks, too: each network those of one of them, or the mean "
        "of those of its share of them",
    )
    how.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    run = parser.add_argument_group("run")
    run.add_argument("--out", required=True, metavar="FILE", help="the bundle to write")
    run.add_argument("--resume", action="store_true", help="go on where a killed run stopped")
    run.add_argument(
        "--checkpoints",
        metavar="DIR",
        help="folder to keep the checkpoints in (FILE.training, removed at the end)",
    )
    run.add_argument("--device", default="auto", help="auto, cpu, cuda (%(default)s)")
    run.add_argument("--threads", type=int, help="torch threads (all cores)")
    run.add_argument("--cross", action="store_true", help="also fit the covariance between networks")
    run.add_argument(
        "--draws",
        type=int,
        help="degrade the validation tracks so often for calibration; more is steadier (2; with --quick 1)",
    )
    run.add_argument("--half-weights", action="store_true", help="store network weights in 16 bits")
    run.add_argument("--no-test", action="store_true", help="do not score the test tracks")
    add_json_option(run)


def add_split_arguments(data: Arguments) -> None:
    """Which tracks are for training, validation and test."""
    data.add_argument(
        "--holdout", default="", metavar="CLASSES", help="classes to leave out, for example 6,12,13"
    )
    data.add_argument(
        "--fractions",
        help="shares of tracks for training, validation, test (0.7,0.15,0.15; with --own-test 0.8,0.2,0)",
    )
    data.add_argument(
        "--own-test",
        action="store_true",
        help="test on the test part that the data set comes with; --fractions then shares out the others",
    )
    data.add_argument("--split-seed", type=int, default=0, help="seed of the split by track (%(default)s)")


def run(args: argparse.Namespace) -> int:
    import torch

    from lla_fusion_ros.bundle import load_ensemble, save_bundle
    from lla_fusion_ros.cli.training_progress import TrainingProgress
    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.lab.training.recipe import run_recipe
    from lla_fusion_ros.lab.training.train import CheckpointFolder
    from lla_fusion_ros.networks.torch_engine import choose_device
    from lla_fusion_ros.types.memory import keep_freed_memory

    keep_freed_memory()
    out = Path(args.out)
    folder = Path(args.checkpoints) if args.checkpoints else out.with_name(out.name + ".training")
    check_file("--out", out)
    check_folder("--checkpoints", folder)
    if args.threads is not None:
        torch.set_num_threads(max(args.threads, 1))
    device = choose_device(args.device)
    start = None if args.start is None else load_ensemble(args.start)
    teacher = None if args.teacher is None else load_ensemble(args.teacher)
    recipe = _recipe(args, start, teacher)
    try:
        with TrainingProgress() as progress:
            progress.stage(f"loading {args.dataset}")
            tracks = load_dataset(
                args.dataset, args.root, progress.tracks, recipe.settings.size, **recipe.data_options
            )
            tracks = _with_changing(tracks, args.changing)
            tell_skipped(tracks)
            _tell(progress, recipe, tracks)
            bundle = run_recipe(
                recipe, tracks, device, folder, args.resume, report=progress.report, stage=progress.stage
            )
    except KeyboardInterrupt:
        if folder.is_dir():
            print(f"the same command with --resume goes on from '{folder}'", file=sys.stderr)
        raise
    digest = save_bundle(bundle, out)
    if not args.checkpoints:
        CheckpointFolder(folder, recipe.settings, "").clear()
    write_json({**bundle.meta.as_dict(), "hash": digest}, args.json)
    if args.json != STDOUT:
        size = os.path.getsize(out) / 1e6
        print(f"{out}: {bundle.networks} networks, {bundle.classes} classes, {size:.1f} MB, {digest[:12]}")
        if args.quick:
            print("a quick first bundle, to try things with: train without --quick for one to rely on")
        print(f"default fuser {bundle.meta.default_fuser}; `lla-fusion info {out}` shows the scores")
    return 0


def _with_changing(tracks: TrackSet, named: str | None) -> TrackSet:
    from dataclasses import replace

    from lla_fusion_ros.types.errors import InputError, unknown_name

    names = () if named is None else tuple(name.strip() for name in named.split(","))
    for name in names:
        if name not in tracks.class_names:
            raise InputError(f"--changing: {unknown_name('class', name, tracks.class_names)}")
    return replace(tracks, changing=names or tracks.changing)


def _tell(progress: TrainingProgress, recipe: Recipe, tracks: TrackSet) -> None:
    """What was loaded, what to be careful about, and how much work it is."""
    from lla_fusion_ros.lab.calibration.assemble import calibration_work
    from lla_fusion_ros.lab.calibration.cross_fit import all_tracks, left_out
    from lla_fusion_ros.lab.training.recipe import split_for
    from lla_fusion_ros.lab.training.summary import cautions, summary

    splits, settings = split_for(recipe, tracks), recipe.settings
    for line in summary(tracks, splits):
        progress.tell(line)
    for line in cautions(tracks, splits, settings):
        progress.tell(f"caution: {line}")
    runs = [rest for rest, _ in left_out(splits)] if recipe.all_tracks else []
    splits = all_tracks(splits) if recipe.all_tracks else splits
    crops = sum(len(track.frames) for run in (*runs, splits.train) for track in run.tracks)
    work = calibration_work(splits, settings.members, recipe.calibration)
    progress.expect(work, round(crops * settings.members * settings.epochs * settings.share))


def _recipe(args: argparse.Namespace, start: Any, teacher: Any) -> Any:
    from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions
    from lla_fusion_ros.lab.calibration.fusers import CANDIDATES
    from lla_fusion_ros.lab.training.recipe import Recipe
    from lla_fusion_ros.lab.training.training_settings import TrainSettings
    from lla_fusion_ros.networks import Normalisation

    usual = QUICK if args.quick else USUAL
    members, epochs, draws = (
        usual[name] if getattr(args, name) is None else getattr(args, name)
        for name in ("members", "epochs", "draws")
    )
    if start is not None:  # what the networks were made for must stay as it is
        start.members()  # or a sentence why torch cannot train them
        architecture, margin = start.meta.architecture, start.meta.crop_margin
        normalisation, members = start.normalisation(), start.networks
        shared = start.meta.training.get("shared", 0)
    else:
        architecture, margin, shared = _architecture(args), args.margin, args.shared
        normalisation = Normalisation(gray=architecture.get("image_channels") == 1)
    settings = TrainSettings(
        architecture=architecture,
        margin=margin,
        members=members,
        epochs=epochs,
        prior_precision=args.prior,
        shared=shared,
        **{name: getattr(args, name) for name in AS_NAMED},
        normalisation=normalisation,
    )
    calibration = CalibrationOptions(
        cross=args.cross,
        outliers=usual["outlier_tracks"],
        background=args.background,
        draws=draws,
        test=not args.no_test,
        candidates=QUICK_CANDIDATES if args.quick else CANDIDATES,
        seed=args.seed,
    )
    default = "0.8,0.2,0" if args.own_test else "0.7,0.15,0.15"
    return Recipe(
        settings,
        calibration,
        holdout=tuple(numbers("--holdout", args.holdout)),
        fractions=shares("--fractions", args.fractions or default),
        split_seed=args.split_seed,
        own_test=args.own_test,
        all_tracks=args.all_tracks,
        start=start,
        teacher=teacher,
        quick=args.quick,
        plugins=tuple(words(args.plugins)),
        half=args.half_weights,
        data_options=options_of(args),
        command=shlex.join(["lla-fusion", *(word for word in sys.argv[1:] if word != "--resume")]),
    )


def _architecture(args: argparse.Namespace) -> dict[str, Any]:
    architecture: dict[str, Any] = {"name": args.network, "size": args.size or 32}
    if args.channels:
        architecture["channels"] = numbers("--channels", args.channels)
    if args.stem:
        architecture["stem"] = args.stem
    if args.width:
        architecture["width"] = args.width
    if args.network == "dense":
        architecture["image_channels"] = 1
    return architecture
