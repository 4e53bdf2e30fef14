"""Whole drives of the built-in world through the engine: fusion rules against single frames.

Two cameras, one bundle, three ways: with ids that mean the same object in both cameras (global), with the
built-in trackers and joins by geometry (tracking), and as a detector's scores without networks (scores). The
networks' outputs are kept in ~/.cache/lla_fusion_ros/drives, so that another run takes a minute.

    python -m bench.drives --seeds 1-6                          # three ways: a minute or two
    python -m bench.drives --seeds 1-6 --ways global --model my.safetensors
    python -m bench.drives --json drives.json                   # the seeds of the results page
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.drive_runs import ALONE, SINGLE, WAYS, Told, drive_views, scores_only, told_of
from bench.drive_scores import CAUSES, PARTS, SURE, all_scores, rows_of
from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import load_ensemble
from lla_fusion_ros.cli.progress import WorkProgress
from lla_fusion_ros.report.comparison import COMPARED
from lla_fusion_ros.types.errors import LlaFusionError

SEEDS = "201-220"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        record = measure(
            options.model, options.seeds, options.duration, options.ways, options.rules, options.jobs
        )
    except LlaFusionError as error:
        print(f"bench.drives: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    show(record, Console(highlight=False, width=160))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.drives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seeds", default=SEEDS, help="of the drives, as 1-6 or 1,3,5 (%(default)s: those of the results)"
    )
    parser.add_argument("--duration", type=float, default=20.0, help="seconds of each drive (%(default)s)")
    parser.add_argument(
        "--model", default="signworld", help="bundle, or the name of one that ships (%(default)s)"
    )
    parser.add_argument("--ways", default=",".join(WAYS), help="of %(default)s (default: all)")
    parser.add_argument(
        "--rules", default=",".join(COMPARED), help="fusers beside the bundle's default (%(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one a core)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record to this file")
    options = parser.parse_args(arguments)
    try:
        options.seeds = tuple(_seeds(options.seeds))
    except ValueError:
        parser.error(f"--seeds {options.seeds}: expected numbers and ranges, as 1-6 or 1,3,5")
    options.ways = tuple(filter(None, options.ways.split(",")))
    options.rules = tuple(filter(None, options.rules.split(",")))
    if not options.seeds or not options.ways or set(options.ways) - set(WAYS):
        parser.error(f"--ways {','.join(options.ways)}: choose some of {', '.join(WAYS)}")
    return options


def measure(
    model: str,
    seeds: tuple[int, ...],
    duration: float,
    ways: tuple[str, ...],
    rules: tuple[str, ...],
    jobs: int = 1,
) -> dict[str, Any]:
    """The record of all drives."""
    bundle = load_ensemble(model)
    told: list[dict[tuple[str, str], Told]] = []
    with WorkProgress() as progress:
        for done in _each(partial(told_of, model, ways, rules, duration), seeds, jobs):
            told.append(done)
            progress.part("drives", len(told), len(seeds))
    drives = [drive_views(bundle, seed, duration) for seed in seeds]
    classes, changing = bundle.class_names, bundle.changing()
    tables = {key: rows_of(drives, [own[key] for own in told], classes, changing) for key in told[0]}
    fusers = {way: (scores_only(bundle) if way == "scores" else bundle).meta.default_fuser for way in ways}
    return {
        "command": "python -m bench.drives " + " ".join(_given(model, seeds, duration, ways, rules)),
        "version": __version__,
        "bundle": {"name": model, "hash": bundle.hash},
        "seeds": list(seeds),
        "duration": duration,
        "drives": len(drives),
        "defaults": fusers,
        **all_scores(tables, SINGLE, ALONE, fusers),
    }


def show(record: dict[str, Any], console: Console) -> None:
    """The tables of every way."""
    for way in record["defaults"]:
        console.print(f"\n[bold]{way}[/]: {WAYS[way]}")
        console.print(_rules(record, way))
        console.print(_changes(record, way))
        console.print(_against(record, way))
        if any(row["reasons"] for row in _of(record["warned"], way=way)):
            console.print(_warned(record, way))


def _rules(record: dict[str, Any], way: str) -> Table:
    table = Table(box=None, header_style="bold")
    for title in ("", "rule", "accuracy", "NLL", "of single", "of one view", "ECE", "last", *CAUSES):
        table.add_column(title, justify="left" if title in ("", "rule") else "right")
    for part in PARTS:
        for row in _of(record["rules"], way=way, part=part):
            numbers = (f"{row[key]:.4f}" for key in ("accuracy", "nll"))
            ratios = (f"{row[key]:.3g}" for key in ("of_single", "of_one_view"))
            rest = (f"{row[key]:.4f}" for key in ("ece", "last_accuracy"))
            causes = (str(row["sure_wrong"][cause]) for cause in CAUSES)
            name = f"{row['rule']} (default)" if row["default"] else row["rule"]
            table.add_row(f"{part}, {row['views']} views", name, *numbers, *ratios, *rest, *causes)
        table.add_section()
    table.caption = f"on the right: frames shown wrongly at p >= {SURE:g}, by cause"
    return table


def _changes(record: dict[str, Any], way: str) -> Table:
    table = Table(box=None, header_style="bold", title="after a change of the class")
    for title in (
        "rule",
        "changes",
        "leads at once",
        "by the second frame",
        f"stale at p >= {SURE:g} a change",
    ):
        table.add_column(title, justify="left" if title == "rule" else "right")
    for row in _of(record["lag"], way=way):
        shares = ("–" if row[key] is None else f"{row[key]:.3f}" for key in ("first", "second", "stale"))
        table.add_row(row["rule"], str(row["changes"]), *shares)
    return table


def _against(record: dict[str, Any], way: str) -> Table:
    table = Table(
        box=None, header_style="bold", title=f"NLL of {record['defaults'][way]} over that of others"
    )
    for title in ("", "other", "difference", "95% over objects", "ratio"):
        table.add_column(title, justify="left" if title in ("", "other") else "right")
    for part in PARTS:
        for row in _of(record["against"], way=way, part=part):
            low, high = row["interval"]
            numbers = f"{row['nll_difference']:+.4f}", f"{low:+.4f} to {high:+.4f}", f"{row['ratio']:.3g}"
            table.add_row(f"{part}, {row['objects']} objects", row["rule"], *numbers)
        table.add_section()
    return table


def _warned(record: dict[str, Any], way: str) -> Table:
    table = Table(box=None, header_style="bold", title="warned of, share of objects (of views)")
    rows = _of(record["warned"], way=way)
    reasons = list(dict.fromkeys(reason for row in rows for reason in row["reasons"]))
    for title in ("", "box in pixels", "objects", "views", *reasons):
        table.add_column(title.replace("_", " "), justify="right" if title else "left")
    for row in rows:
        cells = ("{:.3f} ({:.3f})".format(*row["reasons"].get(reason, (0, 0))) for reason in reasons)
        table.add_row(row["kind"], row["size"], str(row["objects"]), str(row["views"]), *cells)
    return table


def _of(rows: list[dict[str, Any]], **wanted: str) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _each(work: Any, seeds: tuple[int, ...], jobs: int) -> Iterator[Any]:
    """In their order."""
    if jobs < 2 or len(seeds) < 2:
        yield from map(work, seeds)
        return
    with ProcessPoolExecutor(min(jobs, len(seeds)), get_context("spawn")) as pool:
        yield from pool.map(work, seeds)


def _seeds(text: str) -> Iterator[int]:
    for word in filter(None, text.split(",")):
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _given(
    model: str, seeds: tuple[int, ...], duration: float, ways: tuple[str, ...], rules: tuple[str, ...]
) -> Iterator[str]:
    """The options that give the same record."""
    spans = [seeds[0], seeds[-1]] if seeds == tuple(range(seeds[0], seeds[-1] + 1)) else []
    yield "--seeds " + ("-".join(map(str, spans)) or ",".join(map(str, seeds)))
    if duration != 20.0:
        yield f"--duration {duration:g}"
    if model != "signworld":
        yield f"--model {model}"
    if ways != tuple(WAYS):
        yield f"--ways {','.join(ways)}"
    if rules != COMPARED:
        yield f"--rules {','.join(rules)}"


if __name__ == "__main__":
    sys.exit(main())
