"""`lla-fusion calibrate`: fit the fusers of a bundle again and choose its default; the networks stay.

With a bag and its truth: make a bundle for the scores of the detector in it, which has no networks.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from lla_fusion_ros.cli.options import (
    STDOUT,
    add_data_arguments,
    add_json_option,
    options_of,
    tell_skipped,
    write_json,
)
from lla_fusion_ros.cli.words import check_file, words

NAME = "calibrate"
EXTRA = "lab"
HELP = (
    "fit fusers and warnings of a bundle again on its own validation tracks, the networks stay; or make a "
    "bundle for a detector's scores from a recording of it"
)
EXAMPLE = """\
lla-fusion calibrate models/gtsrb.safetensors --dataset gtsrb --root data/GTSRB --out gtsrb.safetensors
lla-fusion calibrate signworld --dataset signworld --fusers evidence_pool --out signworld.safetensors
lla-fusion calibrate signworld --dataset signworld --fusers none --warnings --out signworld.safetensors
lla-fusion calibrate all.safetensors --stand-in gtsrb.safetensors --dataset gtsrb --out fitted.safetensors
lla-fusion calibrate drive --truth drive.truth.json --out scores.safetensors"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bundle", help="the model file, or the name of one that ships; with --truth a bag with detections"
    )
    scores = parser.add_argument_group("scores of a detector, without networks")
    scores.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="what the boxes in the bag show: each the true one that it overlaps most, one to one, by an "
        "intersection over union of at least .5; boxes need no ids",
    )
    scores.add_argument(
        "--camera", action="append", default=[], metavar="NAME=TOPIC", help="its detections (all found)"
    )
    data = parser.add_argument_group("data")
    add_data_arguments(data, required=False)
    how = parser.add_argument_group("calibration")
    how.add_argument(
        "--fusers",
        default="",
        help="fit only these and choose the default among them, or none; the others keep their numbers (all)",
    )
    how.add_argument(
        "--stand-in",
        metavar="BUNDLE",
        help="for networks that have seen all tracks: fit on what these say of tracks kept aside for them",
    )
    how.add_argument("--warnings", action="store_true", help="fit the warnings, too")
    how.add_argument("--background", metavar="DIR", help="natural images without objects, for the warnings")
    how.add_argument(
        "--draws", type=int, default=2, help="of the validation tracks' degradations (%(default)s)"
    )
    how.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    how.add_argument("--no-test", action="store_true", help="do not score the test tracks")
    out = parser.add_argument_group("output")
    out.add_argument("--out", required=True, metavar="FILE", help="the bundle to write")
    add_json_option(out)


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.bundle import load_ensemble, save_bundle
    from lla_fusion_ros.cli.progress import WorkProgress
    from lla_fusion_ros.fusion import fusers
    from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions
    from lla_fusion_ros.lab.calibration.fusers import CANDIDATES
    from lla_fusion_ros.lab.calibration.refit import StandIn, recalibrated
    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.networks.classifier import Classifier
    from lla_fusion_ros.types.errors import InputError, unknown_name

    out = Path(args.out)
    check_file("--out", out)
    if bool(args.dataset) == bool(args.truth):
        raise InputError("give --dataset NAME for a bundle, or --truth FILE for a bag with detections")
    if args.truth:
        return _scores(args, out)
    names = [] if args.fusers == "none" else words(args.fusers) or list(fusers())
    wrong = [name for name in names if name not in fusers()]
    if wrong:
        raise InputError(f"--fusers {args.fusers}: {unknown_name('fuser', wrong[0], fusers())}")
    if not (names or args.warnings):
        raise InputError("--fusers none needs --warnings: nothing else is left to fit")
    if args.background and not args.warnings:
        raise InputError("--background needs --warnings: only they are fitted against it")
    options = CalibrationOptions(
        draws=args.draws,
        test=not args.no_test,
        candidates=tuple(names) if args.fusers else CANDIDATES,
        seed=args.seed,
        background=args.background,
    )
    bundle = load_ensemble(args.bundle)
    aside = load_ensemble(args.stand_in) if args.stand_in else None
    with WorkProgress() as progress:
        progress.stage(f"loading {args.dataset}")
        tracks = load_dataset(args.dataset, args.root, progress.tracks, bundle.input_size, **options_of(args))
        tell_skipped(tracks)
        classify = Classifier(bundle, precision="float32")
        stand_in = StandIn(aside, Classifier(aside, precision="float32")) if aside else None
        told = progress.part
        fresh = recalibrated(bundle, tracks, names, options, classify, told, args.warnings, stand_in)
    commands = [*bundle.meta.training.get("commands", []), shlex.join(["lla-fusion", *sys.argv[1:]])]
    training = {**bundle.meta.training, "commands": commands}
    fresh = replace(fresh, meta=replace(fresh.meta, training=training))
    digest = save_bundle(fresh, out)
    write_json({**fresh.meta.as_dict(), "hash": digest}, args.json)
    if args.json != STDOUT:
        print(f"{out}: default fuser {fresh.meta.default_fuser}, {digest[:12]}")
        print(f"`lla-fusion info {out}` shows how safe it is and its scores")
    return 0


def _scores(args: argparse.Namespace, out: Path) -> int:
    from lla_fusion_ros.bundle import save_bundle
    from lla_fusion_ros.cli.progress import WorkProgress
    from lla_fusion_ros.lab.calibration.scores import calibrated_scores
    from lla_fusion_ros.report.truth import read_truth

    truth = read_truth(args.truth)
    with WorkProgress() as progress:
        bundle, notes = calibrated_scores(Path(args.bundle), truth, progress.part, args.camera, args.seed)
    command = shlex.join(["lla-fusion", *sys.argv[1:]])
    bundle = replace(bundle, meta=replace(bundle.meta, training={"commands": [command]}))
    digest = save_bundle(bundle, out)
    write_json({**bundle.meta.as_dict(), "hash": digest}, args.json)
    if args.json != STDOUT:
        tracks = bundle.meta.dataset["tracks"]
        default, classes = bundle.meta.default_fuser, len(bundle.named_classes)
        print(f"{out}: {classes} classes, default fuser {default}, {digest[:12]}")
        print(f"calibrated on {tracks} tracks; unknown objects are not told: that needs networks")
        for note in notes:
            print(f"note: {note}")
    return 0
