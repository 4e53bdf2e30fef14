"""Measure speed and memory of what users run, as ratios within one run.

Example:
    make bench ARGS=--quick
    make bench ARGS="--json bench.json"
    make bench ARGS="--sections price --picture price.png"
    make bench ARGS=--report          # the networks on a GPU: a text to send to us
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench.device import report
from bench.fleet import measure_fleet
from bench.fusion import measure_fusion
from bench.machine import machine
from bench.memory import measure_memory
from bench.price import draw_price, measure_price
from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.types.errors import LlaFusionError

SECTIONS = {
    "fusion": "engine with the default fuser and warnings, against the float32 forward pass (CPU time)",
    "price": "the product against one plain network and an arg max: CPU time of a view, latency, overload",
    "fleet": "replay of many bags of two cameras on one worker and on two; core-hours and bytes for an hour",
    "memory": "peak memory of a replay with all outputs, by the length of the bag",
}


def records(section: str, road: Path, demo: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """The records of one section."""
    if section == "fusion":
        return measure_fusion(load_bundle(road), 5 if quick else 15)
    if section == "memory":
        return measure_memory(demo, 8.0 if quick else 60.0, 4.0)
    if section == "fleet":
        return measure_fleet(load_bundle(demo), 20 if quick else 200)
    return measure_price(load_bundle(road), quick)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    torch.set_num_threads(1)
    console = Console(highlight=False)
    document: dict[str, Any] = {"version": __version__, "machine": machine(), "quick": options.quick}
    try:
        road, demo = find_model(options.road), find_model(options.demo)
        if options.report:
            print(report(load_bundle(road)))
            return 0
        for section in options.sections:
            document[section] = list(records(section, road, demo, options.quick))
            console.print(f"\n{section}: {SECTIONS[section]}", soft_wrap=True)
            for rows in by_kind(document[section]):
                console.print(table(rows))
            if section == "price" and options.picture is not None:
                draw_price(document[section], options.picture)
            if options.json is not None:
                options.json.write_text(json.dumps(document, indent=1) + "\n")
    except LlaFusionError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sections", default=",".join(SECTIONS), metavar="NAMES", help="of %(default)s (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the records to this file")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw where the time of `price` goes")
    parser.add_argument("--report", action="store_true", help="only: the networks on this computer's GPU")
    parser.add_argument("--road", default="gtsrb", help="bundle of fusion and price (%(default)s)")
    parser.add_argument("--demo", default="signworld", help="bundle of the other sections (%(default)s)")
    options = parser.parse_args(arguments)
    options.sections = [name for name in options.sections.split(",") if name]
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section is called {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return options


def by_kind(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records with the same keys belong together."""
    kinds = dict.fromkeys(row.get("kind") for row in rows)
    return [[row for row in rows if row.get("kind") == kind] for kind in kinds]


def table(rows: list[dict[str, Any]]) -> Table | str:
    """Records without their quartiles and stages, which the JSON has; a single one as a sentence."""
    columns = [key for key in rows[0] if key not in ("kind", "stages_ms") and not key.endswith("_quartiles")]
    lines = [[_text(row[key]) for key in columns] for row in rows]
    if len(rows) == 1:
        named = (f"{name} {value}" for name, value in zip(columns, lines[0], strict=True))
        return f"{rows[0].get('kind', '')} {', '.join(named)}".strip()
    shown = Table(*columns, box=None, header_style="bold", title=rows[0].get("kind"))
    for line in lines:
        shown.add_row(*line)
    return shown


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
