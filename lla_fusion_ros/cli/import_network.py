"""`lla-fusion import`: a trained classifier and a data set in, a bundle out, without training."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import (
    STDOUT,
    add_data_arguments,
    add_json_option,
    options_of,
    tell_skipped,
    write_json,
)
from lla_fusion_ros.cli.train import QUICK, QUICK_CANDIDATES, USUAL, add_split_arguments
from lla_fusion_ros.cli.words import check_file, check_folder, numbers, shares, words
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.lab.importing.recipe import ImportRecipe, Source

NAME = "import"
EXTRA = "import"
HELP = "make a bundle of a trained torch or ONNX classifier and a data set, without training"
EXAMPLE = """\
lla-fusion import --onnx net.onnx --labels classes.txt --dataset folders --root crops --out mine.safetensors
lla-fusion import --onnx imagenet.onnx --head new --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 \\
  --dataset folders --root crops --out mine.safetensors
lla-fusion import --module my_network:make --weights net.pth --size 64 \\
  --dataset folders --root crops --out mine.safetensors"""
OUTLIERS = 90  # tracks, a quarter of what training takes: networks of others are large
HEADS = 5  # bootstrap heads of a trunk, where the user does not say otherwise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    network = parser.add_argument_group("network")
    network.add_argument(
        "--onnx",
        action="append",
        default=[],
        metavar="FILE",
        help="an ONNX classifier; again for an ensemble",
    )
    network.add_argument(
        "--module",
        metavar="PACKAGE:FACTORY",
        help="a function without arguments that gives a torch.nn.Module",
    )
    network.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="FILE",
        help="its state dict, .pth or .safetensors, read without running code; again for an ensemble",
    )
    network.add_argument("--layer", default="", help="name of its last linear layer (found by itself)")
    network.add_argument("--labels", metavar="FILE", help="its classes, one a line (those of the data set)")
    network.add_argument(
        "--head",
        choices=("keep", "new"),
        default="keep",
        help="new: fit a linear head on the classes of the data set, whatever the network was trained on",
    )
    network.add_argument("--members", type=int, help=f"new heads, each fitted on other tracks ({HEADS})")
    image = parser.add_argument_group("what the network takes")
    image.add_argument(
        "--size", type=int, default=0, help="side of its images, where the graph leaves it open"
    )
    image.add_argument("--axes", choices=("nchw", "nhwc"), help="(told by its shape)")
    image.add_argument(
        "--mean", default="0", help="of all colours or of each, pixels being 0 to 1 (%(default)s)"
    )
    image.add_argument("--std", default="1", help="the same, after the mean (%(default)s)")
    image.add_argument(
        "--scale", type=float, default=1.0, help="255 for a network that takes floats up to 255 (%(default)s)"
    )
    image.add_argument("--colours", choices=("rgb", "bgr"), default="rgb", help="(%(default)s)")
    image.add_argument("--margin", type=float, default=0.0, help="boxes are grown by this much (%(default)s)")
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    add_split_arguments(data)
    run = parser.add_argument_group("run")
    run.add_argument("--out", required=True, metavar="FILE", help="the bundle to write")
    run.add_argument("--quick", action="store_true", help="a first bundle, on a small part of the data")
    run.add_argument("--cache", metavar="DIR", help="where an interrupted run goes on from (FILE.import)")
    run.add_argument("--draws", type=int, help="degrade the validation tracks so often (2; with --quick 1)")
    run.add_argument("--no-test", action="store_true", help="do not score the test tracks")
    run.add_argument("--threads", type=int, default=0, help="of the networks (all cores)")
    run.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    add_json_option(run)


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.bundle import save_bundle
    from lla_fusion_ros.cli.training_progress import TrainingProgress
    from lla_fusion_ros.lab.calibration.assemble import calibration_work
    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.lab.importing.recipe import clear, relabelled, run_import
    from lla_fusion_ros.lab.training.recipe import split_for
    from lla_fusion_ros.lab.training.summary import summary
    from lla_fusion_ros.types.memory import keep_freed_memory

    keep_freed_memory()
    out = Path(args.out)
    cache = Path(args.cache) if args.cache else out.with_name(out.name + ".import")
    check_file("--out", out)
    check_folder("--cache", cache)
    recipe = _recipe(args)
    try:
        with TrainingProgress() as progress:
            for source in recipe.sources:
                head = "no head" if source.weight is None else f"{len(source.weight)} classes"
                progress.tell(f"{source.name}: {source.size} px, {head}, {len(source.graph) / 1e6:.1f} MB")
            progress.stage(f"loading {args.dataset}")
            tracks = load_dataset(
                args.dataset, args.root, progress.tracks, recipe.size, **recipe.data_options
            )
            tell_skipped(tracks)
            known = relabelled(tracks, recipe)
            splits = split_for(recipe, known)
            for line in summary(known, splits):
                progress.tell(line)
            progress.expect(calibration_work(splits, recipe.networks, recipe.calibration), 0)
            bundle = run_import(recipe, tracks, cache, args.threads, progress.stage)
    except KeyboardInterrupt:
        if cache.is_dir():
            print(f"the same command goes on from '{cache}'", file=sys.stderr)
        raise
    digest = save_bundle(bundle, out)
    if not args.cache:
        clear(cache)
    write_json({**bundle.meta.as_dict(), "hash": digest}, args.json)
    if args.json != STDOUT:
        size = os.path.getsize(out) / 1e6
        print(f"{out}: {bundle.networks} networks, {bundle.classes} classes, {size:.1f} MB, {digest[:12]}")
        features = bundle.posterior().features
        print(f"the posterior sees {features} features of each network")
        print(f"default fuser {bundle.meta.default_fuser}; `lla-fusion info {out}` shows the scores")
    return 0


def _recipe(args: argparse.Namespace) -> ImportRecipe:
    from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions
    from lla_fusion_ros.lab.importing.recipe import ImportRecipe

    usual = QUICK if args.quick else USUAL
    new = args.head == "new"
    if args.members is not None and (not new or args.members < 1):
        raise InputError(f"--members {args.members}: so many heads are fitted with --head new, one at least")
    calibration = CalibrationOptions(
        outliers=min(usual["outlier_tracks"], OUTLIERS),
        draws=usual["draws"] if args.draws is None else args.draws,
        test=not args.no_test,
        candidates=QUICK_CANDIDATES,
        seed=args.seed,
    )
    default = "0.8,0.2,0" if args.own_test else "0.7,0.15,0.15"
    return ImportRecipe(
        tuple(_sources(args)),
        _labels(args.labels),
        (args.members or HEADS) if new else 0,
        args.margin,
        calibration,
        holdout=tuple(numbers("--holdout", args.holdout)),
        fractions=shares("--fractions", args.fractions or default),
        split_seed=args.split_seed,
        own_test=args.own_test,
        quick=args.quick,
        data_options=options_of(args),
        command=shlex.join(["lla-fusion", *sys.argv[1:]]),
    )


def _sources(args: argparse.Namespace) -> list[Source]:
    from lla_fusion_ros.lab.importing.preprocess import Preprocessing
    from lla_fusion_ros.lab.importing.sources import from_onnx, from_torch

    if bool(args.onnx) == bool(args.module):
        raise InputError(
            "name the network: either --onnx FILE, or --module PACKAGE:FACTORY with --weights FILE"
        )
    wanted = Preprocessing(
        _floats("--mean", args.mean),
        _floats("--std", args.std),
        args.scale,
        args.colours,
        args.axes or "",
        args.size,
    )
    if args.onnx:
        return [from_onnx(Path(path), wanted, args.layer, args.head == "keep") for path in args.onnx]
    weights: list[Path | None] = [Path(path) for path in args.weights] or [None]
    return [from_torch(args.module, path, wanted, args.layer) for path in weights]


def _floats(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in words(text))
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of numbers separated by commas") from None


def _labels(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        names = tuple(line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--labels '{path}' cannot be read: {error}") from None
    names = names[:-1] if names and not names[-1] else names
    if len(set(names)) < len(names) or not all(names):
        raise InputError(f"--labels '{path}' must name every class once, one a line")
    return names
