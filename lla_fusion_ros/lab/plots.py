"""One look for all figures (matplotlib): imported only where somebody asks for a picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")  # files only: vehicles have no display

import matplotlib.pyplot as plt  # noqa: E402  after the choice of the backend

# Okabe and Ito's palette, which colour-blind readers tell apart; black last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")

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


def entropy_histograms(
    entropies: dict[str, tuple[np.ndarray, np.ndarray]], path: Path, names: tuple[str, str]
) -> None:
    """Entropy of the pmf inside and outside, one panel per method (the paper's figure of that kind)."""
    count = len(entropies)
    highest = max(float(np.concatenate(pair).max()) for pair in entropies.values())
    edges = np.linspace(0, max(highest, 1e-3), 41)
    with figure(path, 1, count, 2.5 * count, 2.6, sharex=True) as axes:
        for axis, (title, (inside, outside)) in zip(axes[0], entropies.items(), strict=True):
            axis.hist(inside, edges, density=True, alpha=0.6, color=COLOURS[0], label=names[0])
            axis.hist(outside, edges, density=True, alpha=0.6, color=COLOURS[1], label=names[1])
            axis.set(title=title, xlabel="entropy [nat]", yticks=[])
        axes[0, 0].legend(fontsize=7)
