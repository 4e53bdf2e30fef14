"""`lla-fusion reproduce`: the paper's tables and figures, beside its own numbers, and its camera traps."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from lla_fusion_ros.cli.options import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import check_plots, numbers

NAME = "reproduce"
EXTRA = "lab"
HELP = "repeat the paper's experiments on MNIST, Fashion-MNIST, CIFAR-10 and camera traps"
EXAMPLE = """\
python tools/get_datasets.py --to ~/datasets
lla-fusion reproduce mnist --root ~/datasets
lla-fusion reproduce cifar10 --root ~/datasets --seeds 0,1,2 --json cifar10.json --plots figures
lla-fusion reproduce cameratraps --root ~/datasets/Karoo --trunk efficientnet_lite0.onnx --plots figures"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment", choices=("mnist", "cifar10", "cameratraps"), help="which of the paper's experiments"
    )
    parser.add_argument(
        "--root", required=True, help="folder with one folder per data set; that of Karoo for camera traps"
    )
    parser.add_argument(
        "--trunk", type=Path, metavar="FILE", help="of camera traps: a trained network (ONNX)"
    )
    parser.add_argument("--no-scratch", action="store_true", help="of camera traps: only the trunk's heads")
    parser.add_argument(
        "--seeds", help="one ensemble is trained for each (0,1,2); camera traps: folds to test (0,1,2,3,4)"
    )
    parser.add_argument("--threads", type=int, help="torch threads (all cores)")
    parser.add_argument("--cache", metavar="DIR", help="keeps networks and outputs (~/.cache/lla_fusion)")
    add_json_option(parser)
    parser.add_argument("--plots", metavar="DIR", help="write the figures")


def run(args: argparse.Namespace) -> int:
    import torch

    from lla_fusion_ros import __version__
    from lla_fusion_ros.cli.progress import WorkProgress
    from lla_fusion_ros.cli.tables import print_camera_traps, print_paper_tables
    from lla_fusion_ros.lab.evaluation.cached_views import default_cache
    from lla_fusion_ros.lab.paper.reproduce import reproduce
    from lla_fusion_ros.types.errors import InputError
    from lla_fusion_ros.types.memory import keep_freed_memory

    usual = "0,1,2,3,4" if args.experiment == "cameratraps" else "0,1,2"
    seeds = numbers("--seeds", usual if args.seeds is None else args.seeds)
    if not seeds:
        raise InputError("--seeds names no seed; give at least one, for example --seeds 0")
    check_plots(args.plots)
    keep_freed_memory()
    if args.threads is not None:
        torch.set_num_threads(max(args.threads, 1))
    cache = Path(args.cache).expanduser() if args.cache else default_cache() / "reproduce"
    plots = Path(args.plots) if args.plots else None
    root = Path(args.root).expanduser()
    with WorkProgress() as progress:
        if args.experiment == "cameratraps":
            from lla_fusion_ros.lab.paper.cameratraps import cameratraps

            document = cameratraps(root, args.trunk, seeds, cache, progress.part, plots, not args.no_scratch)
        else:
            document = reproduce(args.experiment, root, seeds, cache, progress.part, plots)
    document |= {"command": shlex.join(["lla-fusion", *sys.argv[1:]]), "version": __version__}
    if args.json != STDOUT:
        traps = args.experiment == "cameratraps"
        (print_camera_traps if traps else print_paper_tables)(document)
    write_json(document, args.json)
    return 0
