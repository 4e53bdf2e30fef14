"""The command line of a page of docs/ whose tables are made from docs/results/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def parse(description: str | None, page: str) -> argparse.Namespace:
    """--page, --results and --check."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / page)
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, tell whether the page is current"
    )
    return parser.parse_args()


def make(args: argparse.Namespace, rendered: Callable[[str], str]) -> int:
    """Write the page that `rendered` makes of the present one, or check it; the exit code."""
    page = args.page.read_text(encoding="utf-8")
    made = rendered(page)
    if args.check:
        if made != page:
            tool = Path(sys.argv[0]).name
            print(f"{args.page} is not what {args.results} say; run tools/{tool}", file=sys.stderr)
        return int(made != page)
    args.page.write_text(made, encoding="utf-8")
    return 0
