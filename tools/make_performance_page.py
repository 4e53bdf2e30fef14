"""Write docs/performance.md and its figures from the JSON of `lla-fusion bench`.

Example: python tools/make_performance_page.py
"""

from __future__ import annotations

import json
from pathlib import Path

from lla_fusion_ros.bench.page import performance_page
from lla_fusion_ros.plots.performance import draw_performance

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    document = json.loads((DOCS / "results" / "bench.json").read_text())
    for figure in draw_performance(document, DOCS / "images"):
        print(figure)
    page = DOCS / "performance.md"
    page.write_text(performance_page(document, "images"))
    print(page)


if __name__ == "__main__":
    main()
