"""The part of `lla-fusion replay` that fuses many bags."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.cli.options import STDOUT, write_json
from lla_fusion_ros.cli.words import check_folder, printable, words
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle
    from lla_fusion_ros.fleet.run import Run
    from lla_fusion_ros.replay.output_folder import Wanted
    from lla_fusion_ros.replay.replay import ReplayOptions

_LISTED = 10  # failures on the terminal; the page and the JSON have all


def add_fleet_arguments(parser: argparse.ArgumentParser) -> None:
    many = parser.add_argument_group("many bags")
    many.add_argument(
        "--workers", type=int, metavar="N", help="processes on this machine (default: one for each core)"
    )
    many.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="a running Dask scheduler, for example tcp://node7:8786; its workers see bags, model and --out "
        "under the same paths",
    )
    many.add_argument(
        "--export-hard",
        nargs=2,
        metavar=("N", "DIR"),
        help="then write the crops of the N least sure, contradicting and unknown objects as a data set",
    )


def is_fleet(args: argparse.Namespace) -> bool:
    """Whether a folder of many results is meant; one bag alone keeps its own folder beside it."""
    from lla_fusion_ros.fleet.find import means_many

    given = args.workers is not None or args.cluster or args.export_hard
    return bool(given) or means_many(args.bag)


def run_fleet_replay(
    args: argparse.Namespace, bundle: Bundle, options: ReplayOptions, wanted: Wanted, out: Path
) -> int:
    from lla_fusion_ros.cli.progress import FleetProgress
    from lla_fusion_ros.fleet.find import find_bags
    from lla_fusion_ros.fleet.folder import Fleet
    from lla_fusion_ros.fleet.hard import export_hard
    from lla_fusion_ros.fleet.plan import Plan, plan_document, plan_hash
    from lla_fusion_ros.fleet.run import dask_client, default_workers, run_fleet
    from lla_fusion_ros.fleet.summary import write_summary
    from lla_fusion_ros.fleet.work import TRUTH_ENDING

    if args.cluster and args.workers is not None:
        raise InputError("--workers is for this machine, --cluster has its own: give one of them")
    if args.workers is not None and args.workers < 1:
        raise InputError(f"--workers {args.workers}: there must be at least one")
    hard = _hard(args.export_hard)
    if args.truth is not None and not args.truth.is_dir():
        raise InputError(f"--truth '{args.truth}': for many bags, give the folder of NAME.truth.json files")
    bundle.fuser(options.fusion.fuser or None, options.fusion.window)  # refused before any process starts
    if args.truth is not None and not any(args.truth.glob(f"*{TRUTH_ENDING}")):
        raise InputError(f"--truth '{args.truth}' has no file NAME{TRUTH_ENDING}; is its drive mounted?")
    bags = find_bags(args.bag)
    truths = None if args.truth is None else args.truth.absolute()
    wanted = replace(wanted, truth=None, tracks=False)
    about = plan_document(bundle, options, wanted, truths is not None)
    source = Path(bundle.source).absolute()
    plan = Plan(
        out.absolute(),
        source,
        bundle.hash,
        options,
        wanted,
        plan_hash(about),
        truths,
        tuple(words(args.plugins)),
    )
    workers = min(args.workers or default_workers(), max(len(bags), 1))
    with (
        Fleet(plan, about, args.overwrite) as fleet,
        FleetProgress() as progress,
        dask_client(workers, args.cluster or "") as client,
    ):
        run = run_fleet(client, plan, fleet, bags, progress.report)
        progress.report("summing up", 0, 0, len(run.failed))
        summary = write_summary(plan.out, run.failed, run.duplicates, run.kept)
        _write_run(plan.out, run)
        missing = [] if hard is None else export_hard(client, plan.out, *hard, args.camera)
    files = [out / name for name in ("summary.html", "summary.json", "bags.parquet", "bags")]
    files += [] if hard is None else [hard[1]]
    if args.json != STDOUT:
        _print(run, summary, missing, files)
    run_document = {**asdict(run), "not_exported": missing}
    write_json({**summary, "run": run_document, "files": list(map(str, files))}, args.json)
    return 130 if run.interrupted else int(bool(run.failed or run.stopped))


def default_out(bags: Sequence[str], beside: Any) -> Path:
    """NAME_fused beside a single folder or list, else fleet_fused here."""
    return beside(Path(bags[0])) if len(bags) == 1 and os.path.exists(bags[0]) else Path("fleet_fused")


def _hard(given: Sequence[str] | None) -> tuple[int, Path] | None:
    if not given:
        return None
    if not given[0].isdecimal() or int(given[0]) < 1:
        raise InputError(f"--export-hard {given[0]!r}: expected how many objects, and a folder")
    target = Path(given[1])
    check_folder("--export-hard", target)
    if target.exists() and any(target.iterdir()):
        raise InputError(f"--export-hard: '{target}' is not empty; name a new folder")
    return int(given[0]), target


def _write_run(out: Path, run: Run) -> None:
    from lla_fusion_ros.fleet.folder import write_atomically

    write_atomically(out / "run.json", json.dumps(asdict(run), indent=1) + "\n")


def _print(run: Run, summary: dict[str, Any], missing: Sequence[str], files: Sequence[Path]) -> None:
    before = f", {len(run.skipped)} were there before" if run.skipped else ""
    print(f"{len(run.fused)} bags fused{before}")
    if run.fused:
        speed = run.recorded / max(run.seconds, 1e-9)
        print(
            f"{run.recorded:.1f} s recorded, fused in {run.seconds:.1f} s on {run.processes} workers "
            f"({speed:.1f}× real time), each with up to {run.memory / 1e6:.0f} MB"
        )
    print(f"all: {summary['bags']} bags, {summary['objects']} objects, {summary['warned']} warned of")
    for path, other in list(run.duplicates.items())[:_LISTED]:
        print(f"note: {printable(path)} has the content of {printable(other)}")
    kept = {each["path"] for each in run.kept.values()}
    for path, reason in list(run.failed.items())[:_LISTED]:
        still = "; its earlier results are kept" if path in kept else ""
        print(f"failed: {printable(path)}: {printable(reason)}{still}")
    if len(run.failed) > _LISTED:
        print(f"failed: {len(run.failed) - _LISTED} more, see summary.json")
    others = [each for each in run.kept.values() if each["path"] not in run.failed]
    for each in others[:_LISTED]:
        print(f"kept: {printable(each['path'])}: {printable(each['why'])}")
    if len(others) > _LISTED:
        print(f"kept: {len(others) - _LISTED} more, see summary.json")
    for sentence in missing:
        print(f"not exported: {printable(sentence)}")
    if run.stopped:
        print(f"stopped: {printable(run.stopped)}; the same command goes on where it was")
    for file in files:
        print(f"  {printable(str(file))}")
