"""`lla-fusion bench`: speed and memory, as ratios in one run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.cli.json_option import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import words
from lla_fusion_ros.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.bench.targets import Target

NAME = "bench"
HELP = "measure speed and memory as ratios: prediction, fusion, replay, live nodes, fit, start-up"
EXAMPLE = """\
lla-fusion bench --quick
lla-fusion bench --laplace-torch --json bench.json
lla-fusion bench --sections live,startup --json live.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sections",
        default="",
        metavar="NAMES",
        help="of prediction, fusion, fusion_live, replay, live, fit, startup, laplace_torch "
        "(default: all but the last)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases: a look in two minutes")
    add_json_option(parser)
    parser.add_argument(
        "--bundle", default="signworld", help="model of fusion_live, replay and live (%(default)s)"
    )
    parser.add_argument("--fusion-bundle", default="gtsrb", help="model of fusion (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (%(default)s)")
    parser.add_argument(
        "--laplace-torch",
        action="store_true",
        help="also compare with laplace-torch, installed into an environment of its own in your cache folder",
    )


def run(args: argparse.Namespace) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))  # before numpy's BLAS is loaded
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from lla_fusion_ros.bench.run import BenchOptions, run_bench, write_document
    from lla_fusion_ros.bench.targets import targets

    options = BenchOptions(_sections(args), args.bundle, args.fusion_bundle, args.quick, args.threads)
    document: dict[str, Any] = {}

    def save(finished: dict[str, Any]) -> None:
        if args.json not in (None, STDOUT):
            write_document(finished, Path(args.json))

    with _Steps(len(options.sections)) as steps:
        notes = run_bench(options, document, steps.report, save)
    if args.json == STDOUT:
        write_json(document, STDOUT)
        return 0
    _print(document, options.sections, targets(document))
    for note in notes:
        print(f"note: {note}")
    if args.json is not None:
        print(f"  {args.json}")
    return 0


def _sections(args: argparse.Namespace) -> tuple[str, ...]:
    from lla_fusion_ros.bench.run import SECTIONS

    chosen = words(args.sections) or [name for name in SECTIONS if name != "laplace_torch"]
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        raise InputError(f"there is no section {', '.join(unknown)}; the sections are {', '.join(SECTIONS)}")
    return (*chosen, *(("laplace_torch",) if args.laplace_torch and "laplace_torch" not in chosen else ()))


class _Steps:
    """A line that tells the section and how many records it has; silent where nobody watches."""

    def __init__(self, sections: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=sections)
        self._seen: set[str] = set()

    def __enter__(self) -> _Steps:
        self._bar.__enter__()
        return self

    def __exit__(self, *trouble: Any) -> None:
        self._bar.__exit__(*trouble)

    def report(self, section: str, records: int) -> None:
        self._seen.add(section)
        text = f"{section}: {records} records"
        self._bar.update(self._task, description=text, completed=len(self._seen) - 1)


def _print(document: dict[str, Any], sections: tuple[str, ...], reached: list[Target]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for section in sections:
        records = document.get(section, [])
        shown = [
            r for r in records if r.get("default", True)
        ]  # of the fusers only the default; the JSON has all
        if not shown:
            continue
        columns = [key for key in shown[0] if not key.endswith("_quartiles") and key not in _NOT_SHOWN]
        table = Table(*columns, title=section, box=None, header_style="bold", title_justify="left")
        for record in shown:
            table.add_row(*(_shown(record.get(key)) for key in columns))
        console.print(table)
    table = Table("numbers to reach", "measured", "limit", "", box=None, header_style="bold")
    for target in reached:
        if target.value is not None:
            sign = "≤" if target.at_most else "≥"
            verdict = "[green]met[/]" if target.met else "[red]missed[/]"
            table.add_row(target.text, f"{target.value:.4g}", f"{sign} {target.limit:g}", verdict)
    console.print(table)


_NOT_SHOWN = ("default", "with_warnings", "clock", "objects", "frames_per_s", "bare_views")


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str("" if value is None else value)
