"""One look for all figures: colours that colour-blind readers tell apart, thin axes, no frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # files only: vehicles have no display

import matplotlib.pyplot as plt  # noqa: E402  after the choice of the backend

# Okabe and Ito's palette, black last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
INSIDE, OUTSIDE = COLOURS[0], COLOURS[1]

_LOOK = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "legend.frameon": False,
    "figure.dpi": 130,
    "savefig.bbox": "tight",
}


@contextmanager
def figure(path: Path, rows: int, columns: int, width: float, height: float, **options: Any) -> Iterator[Any]:
    """Axes [rows, columns] to draw on; the file is written when the block ends without an error."""
    with plt.rc_context(_LOOK):
        drawing, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)
        try:
            yield axes
            drawing.tight_layout()
            path.parent.mkdir(parents=True, exist_ok=True)
            drawing.savefig(path)
        finally:
            plt.close(drawing)
