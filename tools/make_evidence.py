#!/usr/bin/env python3
"""Write the tables of docs/evidence.md from docs/results/*.json, so that no number there is typed.

The page holds prose and marked places; everything between a mark and its end is made anew:

    <!-- table: NAME -->
    <!-- end -->

Example:
    python tools/make_evidence.py            # rewrite the tables
    python tools/make_evidence.py --check    # exit with 1 where the page is not what the results say
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from evidence_tables import TABLES, Results

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"(<!-- table: (?P<name>[^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(page: str, results: Results) -> str:
    """The page with every table made anew; a table whose results are missing says so."""

    def table(match: re.Match[str]) -> str:
        kind, *arguments = match["name"].split()
        if kind not in TABLES:
            raise SystemExit(f"docs/evidence.md asks for the table '{kind}'; known are {', '.join(TABLES)}")
        return match[1] + TABLES[kind](results, *arguments) + match[3]

    return MARK.sub(table, page)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "evidence.md")
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, tell whether the page is current"
    )
    args = parser.parse_args()
    page = args.page.read_text(encoding="utf-8")
    made = rendered(page, Results(args.results))
    if args.check:
        if made != page:
            print(f"{args.page} is not what {args.results} say; run tools/make_evidence.py", file=sys.stderr)
        return int(made != page)
    args.page.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
