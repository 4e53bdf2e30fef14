"""`lla-fusion compare`: what another model or setting would have changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import check_file, printable

if TYPE_CHECKING:
    from lla_fusion_ros.fleet.compare import Comparison

NAME = "compare"
EXTRA = "fleet"
HELP = "compare two replays of the same bags: which objects changed class or warning, and by how much"
EXAMPLE = """\
lla-fusion compare fleet_old fleet_new --html changes.html
lla-fusion compare fleet_old fleet_new --fail-if "nll>+2%" --fail-if "missed>0.01" --json changes.json"""
EXIT_BROKEN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="folder of `lla-fusion replay BAG…`")
    parser.add_argument("b", type=Path, metavar="B", help="another, of the same bags")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page of what changed")
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="LIMIT",
        help="exit with 3 where a number of B is too far from A's: 'nll>+2%%' in shares of A's, "
        "'accuracy<-0.005' in its own unit",
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.fleet.compare import compare_fleets, read_limit

    limits = [read_limit(text) for text in args.fail_if]
    if args.html is not None:
        check_file("--html", args.html)
    found = compare_fleets(args.a, args.b)
    broken = [sentence for limit in limits if (sentence := limit.broken_by(found.differences))]
    if args.html is not None:
        from lla_fusion_ros.fleet.compare_page import comparison_html
        from lla_fusion_ros.fleet.folder import write_atomically

        write_atomically(args.html, comparison_html(found, broken))
    if args.json != STDOUT:
        _print(found, broken)
    write_json({**found.as_dict(), "broken": broken}, args.json)
    return EXIT_BROKEN if broken else 0


def _print(found: Comparison, broken: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    from lla_fusion_ros.fleet.compare_page import number

    for setting in found.settings:
        print(printable(setting))
    for name, own in (("A", found.only_a), ("B", found.only_b)):
        if any(own.values()):
            print(f"only in {name}: {own['bags']} bags, and {own['objects']} objects of common bags")
    table = Table(title=f"{found.objects} objects of {found.bags} bags in both", title_justify="left")
    for column in ("", "A", "B", "B - A", "95% interval", "relative", ""):
        table.add_column(column, justify="right" if column else "left")
    for each in found.differences:
        table.add_row(
            each.name.replace("_", " "),
            number(each, each.a),
            number(each, each.b),
            number(each, each.change, True),
            f"[{number(each, each.low, True)}, {number(each, each.high, True)}]",
            "" if each.relative is None else f"{each.relative:+.1%}",
            each.verdict,
        )
    table.caption = f"intervals draw {found.drawn} again, in pairs; those of ECE, bags"
    Console(highlight=False).print(table)
    gained, lost = (", ".join(f"{n} {why}" for why, n in each.items()) or "none"
                    for each in (found.warnings_gained, found.warnings_lost))  # fmt: skip
    print(
        f"{found.other_class} objects have another class; warnings gained: {printable(gained)}; "
        f"lost: {printable(lost)}"
    )
    for sentence in broken:
        print(f"limit broken: {printable(sentence)}")
