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

import re
import sys

from evidence_tables import TABLES, Results
from generated_page import make, parse

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
    args = parse(__doc__, "evidence.md")
    return make(args, lambda page: rendered(page, Results(args.results)))


if __name__ == "__main__":
    sys.exit(main())
