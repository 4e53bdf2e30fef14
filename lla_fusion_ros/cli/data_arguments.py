"""The options of verbs that read a data set, beyond its name and folder."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Protocol

from lla_fusion_ros.cli.words import data_options

if TYPE_CHECKING:
    from lla_fusion_ros.datasets import TrackSet


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: str, **how: Any) -> argparse.Action: ...


def add_data_arguments(parser: Arguments) -> None:
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the data set, for example tracks=2000",
    )
    parser.add_argument(
        "--layout",
        choices=("tracks", "images"),
        help="of your own folders: files are named <track>_<frame>, or every image shows another object "
        "(what all the names say; a mixture is refused)",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="of your own folders: leave out images that cannot be read, and count them",
    )


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """What the loader of the data set is told."""
    options = data_options(args.option)
    if args.layout:
        options["layout"] = args.layout
    if args.skip_bad:
        options["skip_bad"] = True
    return options


def tell_skipped(tracks: TrackSet) -> None:
    """A line for every reader of a log, also where standard output is JSON."""
    if tracks.skipped:
        shown = ", ".join(f"'{file}'" for file in tracks.skipped[:5])
        more = f" and {len(tracks.skipped) - 5} more" if len(tracks.skipped) > 5 else ""
        print(f"left out {len(tracks.skipped)} images that cannot be read: {shown}{more}", file=sys.stderr)
