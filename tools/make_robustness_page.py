#!/usr/bin/env python3
"""Write the tables and the figure of docs/robustness.md from docs/results/faults.json and soak.json.

Everything between `<!-- table: NAME -->` and `<!-- end -->` is made anew; the prose is left alone.

Example:
    python tools/make_robustness_page.py            # rewrite the tables, draw the figure
    python tools/make_robustness_page.py --check    # exit with 1 where the page is not what the results say
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generated_page import make, parse
from robustness_tables import SOAK_FIGURE, TABLES, read

MARK = re.compile(r"(<!-- table: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(page: str, results: Path) -> str:
    """The page with every table made anew."""

    def table(match: re.Match[str]) -> str:
        if match["name"] not in TABLES:
            raise SystemExit(f"there is no table '{match['name']}'; known are {', '.join(TABLES)}")
        return match[1] + TABLES[match["name"]](results) + match[3]

    return MARK.sub(table, page)


def main() -> int:
    args = parse(__doc__, "robustness.md")
    code = make(args, lambda page: rendered(page, args.results))
    soaked = None if args.check else read(args.results, "soak")
    if soaked is not None:
        from lla_fusion_ros.plots.soak import draw_soak

        draw_soak(soaked["samples"], args.page.parent / "images" / SOAK_FIGURE)
    return code


if __name__ == "__main__":
    sys.exit(main())
