"""`lla-fusion evaluate`: a bundle and tracks in; accuracy, calibration and warnings of every fuser out."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.cli.options import (
    STDOUT,
    add_data_arguments,
    add_json_option,
    options_of,
    tell_skipped,
    write_json,
)
from lla_fusion_ros.cli.words import check_plots, numbers, words
from lla_fusion_ros.types.settings import LENGTHS, PRECISIONS

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle
    from lla_fusion_ros.lab.evaluation.evaluate import Options
    from lla_fusion_ros.lab.evaluation.selection import Selection

NAME = "evaluate"
EXTRA = "lab"
HELP = "score a bundle on a data set of tracks: all fusers, lengths and numbers of networks, and the warnings"
EXAMPLE = """\
lla-fusion evaluate models/signworld.safetensors --dataset signworld --split test
lla-fusion evaluate gtsrb.safetensors --dataset gtsrb --root data/GTSRB --json scores.json --plots figures
lla-fusion evaluate gtsrb.safetensors --dataset gtsrb --root more/GTSRB --split all --regimes hard
lla-fusion evaluate gtsrb.safetensors --dataset gtsrb --root data/GTSRB --ood-dataset signworld
lla-fusion evaluate gtsrb --dataset gtsrb --root data/GTSRB --conditions --background data/streets"""

MEMORY = (
    "Takes at most 4 GB of memory for 2,000 tracks of 30 frames with 5 draws, 5 networks and\n"
    "43 classes; it grows with tracks times draws."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", help="the model file, or the name of one that ships")
    data = parser.add_argument_group("data")
    add_data_arguments(data)
    data.add_argument(
        "--split",
        choices=("all", "test"),
        help="test: the tracks the bundle kept aside when it was trained on this data; all: every track of "
        "the folder, which may lack classes (default: test where the bundle was trained on this folder, else "
        "all)",
    )
    data.add_argument("--ood-dataset", metavar="NAME", help="a data set that plays the outside world")
    data.add_argument("--ood-root", metavar="DIR", help="its folder")
    what = parser.add_argument_group("what to score", MEMORY)
    what.add_argument("--regimes", default="clean,hard,mixed", help="(%(default)s)")
    lengths = ",".join(map(str, LENGTHS))
    what.add_argument("--lengths", default=lengths, help="numbers of frames L (%(default)s)")
    what.add_argument("--networks", default="", help="numbers of networks C (one, and all)")
    what.add_argument("--fusers", default="", help="names, separated by commas (all)")
    what.add_argument(
        "--draws",
        type=int,
        default=5,
        help="how many degraded versions of every track the hard and mixed regimes score, which steadies "
        "the scores; intervals still count every track once (%(default)s)",
    )
    what.add_argument("--seed", type=int, default=1, help="of the degradations (%(default)s)")
    what.add_argument("--resamples", type=int, default=1000, help="of the bootstrap (%(default)s)")
    what.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="of the networks; auto: as nodes and replay run them, int8 on an x86 CPU (%(default)s)",
    )
    what.add_argument(
        "--safety",
        action="store_true",
        help="also show how sure each fuser gets of sure opposite views (once and 15 times each), of one "
        "frame 200 times, and at most",
    )
    what.add_argument(
        "--reliance",
        action="store_true",
        help="also check sets and bounds: whether they hold, and how tight beside an uncertainty wrapper",
    )
    what.add_argument(
        "--changes",
        action="store_true",
        help="also show one wrong frame a second, abrupt changes and fades under one id, at 10 Hz",
    )
    what.add_argument(
        "--conditions",
        action="store_true",
        help="also count how often tracks are called unknown, or cannot be told, under JPEG, dark, blur, "
        "noise, small boxes and others, and how often unknown objects and background are found",
    )
    what.add_argument(
        "--background", metavar="DIR", help="images without known objects, whose places play background there"
    )
    out = parser.add_argument_group("output")
    add_json_option(out)
    out.add_argument("--plots", metavar="DIR", help="write figures")
    out.add_argument("--cache", metavar="DIR", help="folder that keeps network outputs (~/.cache/lla_fusion)")


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.bundle import load_ensemble
    from lla_fusion_ros.cli.progress import WorkProgress
    from lla_fusion_ros.cli.tables import print_evaluation
    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.lab.evaluation.cached_views import default_cache
    from lla_fusion_ros.lab.evaluation.evaluate import evaluate
    from lla_fusion_ros.types.memory import keep_freed_memory

    keep_freed_memory()
    options = _options(args)
    check_plots(args.plots)
    bundle = load_ensemble(args.bundle)
    cache = Path(args.cache) if args.cache else default_cache()
    with WorkProgress() as progress:
        progress.stage(f"loading {args.dataset}")
        # Only who says "all" may bring a part: else a lost folder would make training tracks test tracks.
        options_of_data = {"to_score": args.split == "all", **options_of(args)}
        tracks = load_dataset(args.dataset, args.root, progress.tracks, bundle.input_size, **options_of_data)
        tell_skipped(tracks)
        selection = _selection(args, bundle, tracks)
        parts = (selection.inside, selection.outside)
        frames = sum(min(len(track.frames), max(options.lengths)) for part in parts for track in part.tracks)
        progress.crops_expected(frames * sum(len(options.seeds(regime)) for regime in options.regimes))
        evaluation = evaluate(bundle, selection, options, cache, progress)
    document = _document(bundle, tracks, args.split, selection, options, evaluation)
    if args.plots:
        from lla_fusion_ros.lab.evaluation.figures import all_figures

        all_figures(evaluation, document, Path(args.plots))
    if args.json != STDOUT:
        print_evaluation(document)
    write_json(document, args.json)
    return 0


def _options(args: argparse.Namespace) -> Options:
    from lla_fusion_ros.lab.datasets import REGIMES
    from lla_fusion_ros.lab.evaluation.evaluate import Options
    from lla_fusion_ros.types.errors import InputError, unknown_name

    regimes = words(args.regimes)
    wrong = [name for name in regimes if name not in REGIMES]
    if wrong:
        raise InputError(f"--regimes {args.regimes}: {unknown_name('regime', wrong[0], REGIMES)}")
    if not regimes:
        raise InputError(f"--regimes names none; choose from {', '.join(REGIMES)}")
    lengths = numbers("--lengths", args.lengths)
    if not lengths or min(lengths) < 1:
        raise InputError(f"--lengths {args.lengths!r}: expected numbers from 1 up, separated by commas")
    if args.background and not args.conditions:
        raise InputError("--background needs --conditions: its places are counted with them")
    if args.draws < 1:
        raise InputError(f"--draws {args.draws}: every track is degraded at least once")
    if args.resamples < 10:
        raise InputError(f"--resamples {args.resamples}: an interval needs at least 10")
    return Options(
        regimes=tuple(regimes),  # type: ignore[arg-type]
        lengths=tuple(sorted(set(lengths))),
        networks=tuple(numbers("--networks", args.networks)),
        fusers=tuple(words(args.fusers)),
        draws=args.draws,
        seed=args.seed,
        resamples=args.resamples,
        precision=args.precision,
        safety=args.safety,
        conditions=args.conditions,
        reliance=args.reliance,
        changes=args.changes,
        background=args.background,
    )


def _selection(args: argparse.Namespace, bundle: Bundle, tracks: Any) -> Selection:
    from dataclasses import replace

    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.lab.evaluation.selection import all_outside, select_tracks
    from lla_fusion_ros.types.errors import InputError

    split = args.split or ("test" if bundle.meta.dataset.get("digest") == tracks.digest else "all")
    args.split = split
    selection = select_tracks(bundle, tracks, split)
    if args.ood_root and not args.ood_dataset:
        raise InputError("--ood-root needs --ood-dataset: the name of the data set in that folder")
    if not args.ood_dataset:
        return selection
    outside = load_dataset(args.ood_dataset, args.ood_root, crop_size=bundle.input_size, to_score=True)
    return replace(selection, outside=all_outside(bundle, outside))


def _document(
    bundle: Bundle, tracks: Any, split: str, selection: Selection, options: Options, evaluation: Any
) -> dict[str, Any]:
    from lla_fusion_ros import __version__

    return {
        "command": shlex.join(["lla-fusion", *sys.argv[1:]]),
        "bundle": {"file": Path(bundle.source).name, "hash": bundle.hash, "networks": bundle.networks},
        "dataset": {
            "name": tracks.name,
            "digest": tracks.digest,
            "split": split,
            "split_seed": bundle.meta.dataset.get("split_seed"),
        },
        "default_fuser": bundle.meta.default_fuser,
        "tracks": len(selection.inside.tracks),
        "outside_tracks": len(selection.outside.tracks),
        "draws": options.draws,
        "seed": options.seed,
        "version": __version__,
        "results": evaluation.results,
        "single_frame": evaluation.single_frame,
        "comparisons": evaluation.comparisons,
        "ood": evaluation.ood,
        "switch": evaluation.switch,
        "safety": evaluation.safety,
        "conditions": evaluation.conditions,
        "sets": evaluation.sets,
        "bounds": evaluation.bounds,
        "changes": evaluation.changes,
    }
