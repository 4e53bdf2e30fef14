#!/usr/bin/env python3
"""Write the generated parts of the pages in docs/ from docs/results/*.json and models/.

They stand between `<!-- generated: NAME ARGUMENTS -->` and `<!-- end -->`; the prose is left alone.

Example:
    python tools/make_results.py                   # rewrite them
    python tools/make_results.py --check           # exit with 1 where a page is not what the results say
    python tools/make_results.py --add gtsrb.json  # first take a new record into docs/results
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from compact_results import compact, write
from result_tables import TABLES, Results

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = re.compile(r"(<!-- generated: (?P<what>[^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(page: str, results: Results) -> str:
    """The page with its generated parts renewed."""

    def part(match: re.Match[str]) -> str:
        name, *arguments = match["what"].split()
        if name not in TABLES:
            raise SystemExit(f"there is no table '{name}'; known are {', '.join(TABLES)}")
        return match[1] + TABLES[name](results, *arguments) + match[3]

    return MARK.sub(part, page)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the pages (docs)")
    parser.add_argument("--add", type=Path, nargs="+", default=(), metavar="FILE", help="records of new runs")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, say which pages are out of date"
    )
    args = parser.parse_args()
    for file in args.add:
        write(compact(json.loads(file.read_text(encoding="utf-8"))), args.docs / "results" / file.name)
    results, old = Results(args.docs / "results"), []
    for page in sorted(args.docs.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = rendered(text, results)
        if made != text:
            old.append(page)
            if not args.check:
                page.write_text(made, encoding="utf-8")
    if args.check:
        for page in old:
            print(f"{page} is not what docs/results says; run tools/make_results.py", file=sys.stderr)
    return int(args.check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
