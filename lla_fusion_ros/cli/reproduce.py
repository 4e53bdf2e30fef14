"""`lla-fusion reproduce`: the paper's tables 1 and 2 and its figures, beside the paper's own numbers."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from lla_fusion_ros.cli.json_option import STDOUT, add_json_option, write_json

NAME = "reproduce"
HELP = "repeat the paper's experiments on MNIST, Fashion-MNIST and CIFAR-10, beside its printed numbers"
EXAMPLE = """\
python tools/get_datasets.py --to ~/datasets
lla-fusion reproduce mnist --root ~/datasets
lla-fusion reproduce cifar10 --root ~/datasets --seeds 0,1,2 --json cifar10.json --plots figures"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", choices=("mnist", "cifar10"), help="which of the paper's experiments")
    parser.add_argument("--root", required=True, help="folder with one folder per data set")
    parser.add_argument("--seeds", default="0,1,2", help="one ensemble is trained for each (%(default)s)")
    parser.add_argument("--threads", type=int, help="torch threads (all cores)")
    parser.add_argument("--cache", metavar="DIR", help="keeps networks and outputs (~/.cache/lla_fusion)")
    add_json_option(parser)
    parser.add_argument("--plots", metavar="DIR", help="write the figures (needs matplotlib)")


def run(args: argparse.Namespace) -> int:
    import torch

    from lla_fusion_ros import __version__
    from lla_fusion_ros.cli.output_paths import check_folder
    from lla_fusion_ros.cli.words import numbers
    from lla_fusion_ros.cli.work_progress import WorkProgress
    from lla_fusion_ros.errors import InputError
    from lla_fusion_ros.evaluation.outputs import default_cache
    from lla_fusion_ros.memory import keep_freed_memory
    from lla_fusion_ros.reproduction.run import reproduce

    seeds = numbers("--seeds", args.seeds)
    if not seeds:
        raise InputError("--seeds names no seed; give at least one, for example --seeds 0")
    if args.plots:
        check_folder("--plots", Path(args.plots))
    keep_freed_memory()
    if args.threads is not None:
        torch.set_num_threads(max(args.threads, 1))
    cache = Path(args.cache).expanduser() if args.cache else default_cache() / "reproduce"
    plots = Path(args.plots) if args.plots else None
    with WorkProgress() as progress:
        document = reproduce(
            args.experiment, Path(args.root).expanduser(), seeds, cache, progress.part, plots
        )
    document |= {"command": shlex.join(["lla-fusion", *sys.argv[1:]]), "version": __version__}
    if args.json != STDOUT:
        print_table(document)
    write_json(document, args.json)
    return 0


DETECTION = ("delta_entropy", "auroc", "aupr")
# Two short lines where one would be cut off at 80 columns.
HEADERS = {
    "accuracy": "acc.",
    "mass": "Σ p\n(10³)",
    "ece_paper": "ECE,\npaper",
    "delta_entropy": "ΔE (10³)",
}


def print_table(document: dict[str, Any]) -> None:
    """Table 1 and, where something outside was scored, table 2."""
    from rich.console import Console
    from rich.table import Table

    scores = [name for name in document["table"][0]["scores"] if name != "confidence"]  # seven do not fit
    for number, names in (
        (1, [n for n in scores if n not in DETECTION]),
        (2, [n for n in scores if n in DETECTION]),
    ):
        if not names:
            continue
        table = Table(
            title=f"table {number}: {document['experiment']}, {document['networks']} networks, "
            f"{document['epochs']} epochs, {len(document['seeds'])} seeds; mean ± spread (paper)",
            title_justify="left",
        )
        table.add_column("method", overflow="fold")
        for name in names:
            table.add_column(HEADERS.get(name, name), justify="right", overflow="fold")
        for row in document["table"]:
            table.add_row(row["method"].replace("_", " "), *(_cell(row["scores"][name]) for name in names))
        Console(highlight=False).print(table)


def _cell(score: dict[str, Any]) -> str:
    """Under each other: mean, spread, and the paper's value; so a table of six scores fits 80 columns."""
    printed = "" if score["paper"] is None else f"\n({score['paper']:g})"
    return f"{score['mean']:.4f}\n±{score['spread']:.4f}{printed}"
